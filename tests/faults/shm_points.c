/*
 * Kills a process at every step, in turn. The backend's sources are compiled
 * with HF__SHM_POINTS, which puts a call between any two steps that others can
 * see; here the n-th call ends the victim, for n = 1, 2, 3 ... until it comes
 * through. It is killed as holder, as waiter, while it hands over, gives up,
 * takes a dead one's lock, buries it, makes the file, breaks, renews.
 *
 * Around it live `holder` and `waiter`, and afterwards the waiter and then a
 * third, the prober, must get the lock within 100 ms, with rising tokens, and
 * nothing may be left in the file but what the living have.
 *
 *     shm_points [scenario [n]]
 */
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 100, PLACES = 512 };

void hf__shm_point(const char *file, int line);

struct place {
    char file[24];
    int line;
    int kills;
};

static struct shared {
    struct place killed_at; /* the victim's last words */
    struct place place[PLACES];
    _Atomic int phase; /* of the scenario, for the victim and us */
} * shared;

static _Atomic int countdown; /* 0: not armed */
static char dir[64], url[80], fault[200];
static struct shm_file *file;
static uint64_t last_token;
static int64_t worst;

void hf__shm_point(const char *path, int line)
{
    const char *name = strrchr(path, '/');

    if (!atomic_load(&countdown) || atomic_fetch_sub(&countdown, 1) != 1)
        return;
    snprintf(shared->killed_at.file, sizeof(shared->killed_at.file), "%s",
             name ? name + 1 : path);
    shared->killed_at.line = line;
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void nap_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}

/* ---- actors: processes that do what they are told ----------------------- */

struct order {
    char verb; /* a acquire, r release, o open anew, q quit */
    int64_t wait_ms, lease_ms;
};

struct answer {
    int rc;
    uint64_t token;
    int64_t at;
    char text[160];
};

struct actor {
    pid_t pid;
    int fd;
};

struct seat { /* a client and its lock */
    hf_client *client;
    hf_lock *lock;
};

static bool is_fair;

static int sit(struct seat *s, hf_error *err)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    int rc = hf_open(url, NULL, &s->client, err);

    opt.fairness = is_fair ? HF_FAIR : HF_UNFAIR;
    if (!rc)
        rc = hf_lock_new(s->client, "x", 1, &opt, &s->lock, err);
    return rc;
}

static void stand_up(struct seat *s)
{
    hf_lock_free(s->lock);
    hf_close(s->client);
}

static int obey(struct seat *s, const struct order *o, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.wait_ms = o->wait_ms;
    opt.lease_ms = o->lease_ms;
    switch (o->verb) {
    case 'a':
        return hf_lock_acquire(s->lock, &opt, err);
    case 'r':
        return hf_lock_release(s->lock, err);
    case 'o':
        stand_up(s);
        return sit(s, err);
    default:
        stand_up(s);
        _exit(0);
    }
}

static void actor_main(int fd)
{
    struct seat s = {NULL, NULL};
    hf_error err = HF_ERROR_INIT;
    struct order o;
    int rc = sit(&s, &err);

    for (;;) {
        struct answer a = {rc, 0, now_ns(), {0}};

        snprintf(a.text, sizeof(a.text), "%s", err.text);
        if (!rc)
            hf_lock_token(s.lock, &a.token);
        if (write(fd, &a, sizeof(a)) != sizeof(a) ||
            read(fd, &o, sizeof(o)) != sizeof(o))
            _exit(0);
        rc = obey(&s, &o, &err);
    }
}

static bool hear(struct actor *a, struct answer *answer, int timeout_ms)
{
    struct pollfd p = {a->fd, POLLIN, 0};

    return poll(&p, 1, timeout_ms) == 1 &&
           read(a->fd, answer, sizeof(*answer)) == sizeof(*answer);
}

static void tell(struct actor *a, char verb, int64_t wait_ms, int64_t lease_ms)
{
    struct order o = {verb, wait_ms, lease_ms};

    if (write(a->fd, &o, sizeof(o)) != sizeof(o))
        perror("shm_points: tell");
}

static void say_fault(const char *what)
{
    if (!fault[0])
        snprintf(fault, sizeof(fault), "%s", what);
}

/* Tells and waits for the answer, which is to be 0. */
static struct answer ask(struct actor *a, char verb, int64_t wait_ms,
                         int64_t lease_ms)
{
    struct answer answer = {-1, 0, 0, "no answer"};

    tell(a, verb, wait_ms, lease_ms);
    if (!hear(a, &answer, 12000) || answer.rc)
        say_fault(answer.text);
    return answer;
}

static void begin(struct actor *a)
{
    struct answer answer;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        perror("shm_points: socketpair");
        exit(2);
    }
    a->fd = fds[0];
    a->pid = fork();
    if (!a->pid) {
        close(fds[0]);
        actor_main(fds[1]);
    }
    close(fds[1]);
    if (!hear(a, &answer, 12000) || answer.rc)
        say_fault("an actor could not open");
}

static void end(struct actor *a, int sig)
{
    if (sig)
        kill(a->pid, sig);
    else
        tell(a, 'q', 0, 0);
    waitpid(a->pid, NULL, 0);
    close(a->fd);
    a->pid = 0;
}

/* ---- what is in the file ------------------------------------------------ */

static void look_into_file(void)
{
    char path[96];
    int fd;

    if (file)
        munmap(file, sizeof(*file));
    snprintf(path, sizeof(path), "%s/locks", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    file = mmap(NULL, sizeof(*file), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (file == MAP_FAILED) {
        perror("shm_points: map");
        exit(2);
    }
}

static int queued(void)
{
    int n = 0;

    for (unsigned i = 0; i < SHM_MAP_LEN; i++)
        n += __builtin_popcountll(atomic_load(&file->entry[0].waiting[i]));
    return n;
}

/* Until so many wait, or the victim is gone. */
static void await_queue(int n, pid_t victim)
{
    int64_t until = now_ns() + 2000000000LL;
    siginfo_t info;

    while (queued() < n && now_ns() < until) {
        info.si_pid = 0;
        if (victim &&
            !waitid(P_PID, (id_t)victim, &info, WEXITED | WNOHANG | WNOWAIT) &&
            info.si_pid)
            return;
        nap_us(20);
    }
    if (queued() < n)
        say_fault("the queue did not fill");
}

static void check_leaks(int clients)
{
    int cells = 0, slots = 0, names = 0;
    char text[100];

    for (unsigned i = 0; i < SHM_CELLS; i++)
        cells += atomic_load(&file->cell[i].owner) != 0;
    for (unsigned i = 0; i < SHM_SLOTS; i++)
        slots += atomic_load(&file->slot[i].state) != SHM_SLOT_FREE;
    for (unsigned i = 0; i < SHM_NAMES; i++)
        names += atomic_load(&file->hash[i]) != 0;
    snprintf(text, sizeof(text), "left behind: %d cells, %d slots, %d names",
             cells, slots - clients, names - 1);
    if (cells || slots != clients || names != 1 || queued())
        say_fault(text);
}

static void check_grant(const struct answer *a, int64_t since, int limit_ms,
                        const char *who)
{
    char text[100];

    if (a->rc || a->at - since > limit_ms * 1000000LL) {
        snprintf(text, sizeof(text), "the %s got it after %.1f ms (%d)", who,
                 (double)(a->at - since) / 1e6, a->rc);
        say_fault(text);
    }
    if (a->at - since > worst && limit_ms == LIMIT_MS)
        worst = a->at - since;
    if (a->token <= last_token)
        say_fault("the token did not rise");
    last_token = a->token;
}

/* ---- scenarios ---------------------------------------------------------- */

static struct actor holder, waiter, prober, dead;

struct scenario {
    const char *name;
    /* In the victim; the client is open unless `early`. */
    void (*victim)(struct seat *);
    /* In us: before it starts, while it runs, and the waiter's part. */
    void (*prepare)(void);
    void (*drive)(pid_t victim);
    bool early;
    bool waiter_waits; /* it is told to acquire by prepare or drive */
};

static void v_acquire_release(struct seat *s)
{
    if (!hf_lock_timed(s->lock, 10000, NULL))
        hf_lock_release(s->lock, NULL);
}

static void v_acquire_later(struct seat *s)
{
    atomic_store(&shared->phase, 1);
    while (atomic_load(&shared->phase) != 2)
        nap_us(20);
    v_acquire_release(s);
}

static void v_everything(struct seat *s)
{
    if (!sit(s, NULL)) {
        v_acquire_release(s);
        stand_up(s);
    }
}

static void v_open_close(struct seat *s)
{
    if (!sit(s, NULL))
        stand_up(s);
}

static void v_hand_over(struct seat *s)
{
    hf_lock_timed(s->lock, 10000, NULL);
    atomic_store(&shared->phase, 1);
    while (atomic_load(&shared->phase) != 2)
        nap_us(20);
    hf_lock_release(s->lock, NULL);
}

static void v_give_up(struct seat *s)
{
    hf_lock_timed(s->lock, 5, NULL);
}

static void v_give_up_at_grant(struct seat *s)
{
    hf_lock_timed(s->lock, 3, NULL);
    hf_lock_release(s->lock, NULL);
}

static void v_lease(struct seat *s)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.wait_ms = 10000;
    opt.lease_ms = 60000;
    if (hf_lock_acquire(s->lock, &opt, NULL))
        return;
    atomic_store(&shared->phase, 1);
    while (atomic_load(&shared->phase) != 2)
        nap_us(20);
    hf_lock_renew(s->lock, 50000, NULL);
    hf_lock_release(s->lock, NULL);
}

static void v_break(struct seat *s)
{
    hf_break(s->client, "x", 1, NULL);
}

static void v_close_held(struct seat *s)
{
    hf_lock_timed(s->lock, 10000, NULL);
    atomic_store(&shared->phase, 1);
    while (atomic_load(&shared->phase) != 2)
        nap_us(20);
    hf_close(s->client);
}

static bool has_ended(pid_t victim)
{
    siginfo_t info = {0};

    return !waitid(P_PID, (id_t)victim, &info, WEXITED | WNOHANG | WNOWAIT) &&
           info.si_pid;
}

static void d_nothing(pid_t victim)
{
    (void)victim;
}

static void p_nothing(void)
{
}

static void p_held(void)
{
    ask(&holder, 'a', 10000, 0);
}

/* The waiter queues up once the victim has the lock. */
static void d_wait_for_victim(pid_t victim)
{
    while (!atomic_load(&shared->phase) && !has_ended(victim))
        nap_us(20);
    tell(&waiter, 'a', 10000, 0);
    if (!has_ended(victim))
        await_queue(1, victim);
    atomic_store(&shared->phase, 2);
}

/* Victim, then waiter queue up behind the holder, who lets go. */
static void d_victim_in_front(pid_t victim)
{
    await_queue(1, victim);
    tell(&waiter, 'a', 10000, 0);
    nap_us(500);
    ask(&holder, 'r', 0, 0);
}

static void d_victim_behind(pid_t victim)
{
    struct answer a = {-1, 0, 0, "not granted"};
    int64_t since;

    await_queue(2, victim);
    nap_us(500);
    since = now_ns();
    ask(&holder, 'r', 0, 0);
    hear(&waiter, &a, 10000);
    check_grant(&a, since, LIMIT_MS, "waiter");
    ask(&waiter, 'r', 0, 0);
}

static void p_held_and_waited_for(void)
{
    ask(&holder, 'a', 10000, 0);
    tell(&waiter, 'a', 10000, 0);
    await_queue(1, 0);
}

/* The holder lets go when the victim has given up, and the waiter is behind
 * it; or was before. */
static void d_gives_up_in_front(pid_t victim)
{
    await_queue(1, victim);
    tell(&waiter, 'a', 10000, 0);
    while (!has_ended(victim))
        nap_us(50);
    ask(&holder, 'r', 0, 0);
}

static void d_gives_up_behind(pid_t victim)
{
    while (!has_ended(victim))
        nap_us(50);
    ask(&holder, 'r', 0, 0);
}

/* The holder dies, the victim is the first to notice. */
static void p_dead_holds(void)
{
    begin(&dead);
    ask(&dead, 'a', 10000, 0);
}

static void d_kill_the_holder(pid_t victim)
{
    await_queue(1, victim);
    tell(&waiter, 'a', 10000, 0);
    nap_us(500);
    end(&dead, SIGKILL);
}

/* Nobody waits, so nobody has noticed; the victim opened before that. */
static void d_kill_unnoticed(pid_t victim)
{
    while (!atomic_load(&shared->phase) && !has_ended(victim))
        nap_us(20);
    end(&dead, SIGKILL);
    atomic_store(&shared->phase, 2);
}

static void p_dead_held(void)
{
    begin(&dead);
    ask(&dead, 'a', 10000, 0);
    end(&dead, SIGKILL);
}

/* A waiter in the middle of the queue is dead, and the victim behind it. */
static void p_dead_waits(void)
{
    p_held();
    begin(&dead);
    tell(&dead, 'a', 10000, 0);
    await_queue(1, 0);
}

static void p_dead_waited(void)
{
    p_dead_waits();
    end(&dead, SIGKILL);
}

static void d_kill_the_waiter(pid_t victim)
{
    await_queue(2, victim);
    tell(&waiter, 'a', 10000, 0);
    nap_us(500);
    end(&dead, SIGKILL);
    nap_us(1000);
    ask(&holder, 'r', 0, 0);
}

/* The holder is stopped, its lease ends, the victim takes the lock. */
static void p_lease_ends(void)
{
    begin(&dead);
    ask(&dead, 'a', 10000, 30);
    kill(dead.pid, SIGSTOP);
}

static void d_lease_ends(pid_t victim)
{
    await_queue(1, victim);
    tell(&waiter, 'a', 10000, 0);
    nap_us(35000);
    end(&dead, SIGKILL);
}

static void p_no_file(void)
{
    char path[96];

    end(&holder, 0);
    end(&waiter, 0);
    end(&prober, 0);
    snprintf(path, sizeof(path), "%s/locks", dir);
    unlink(path);
}

static void d_no_file(pid_t victim)
{
    while (!has_ended(victim))
        nap_us(100);
    begin(&holder);
    begin(&waiter);
    begin(&prober);
    look_into_file();
}

static void d_give_up_race(pid_t victim)
{
    await_queue(1, victim);
    tell(&waiter, 'a', 10000, 0);
    nap_us(2000 + now_ns() % 1000); /* about when the victim gives up */
    ask(&holder, 'r', 0, 0);
}

static void d_release(pid_t victim)
{
    while (!has_ended(victim))
        nap_us(50);
    tell(&holder, 'r', 0, 0); /* may have been broken: any answer is good */
    hear(&holder, &(struct answer){0}, 5000);
}

static const struct scenario scenarios[] = {
    {"open to close", v_everything, p_nothing, d_nothing, true, false},
    {"make the file", v_everything, p_no_file, d_no_file, true, false},
    {"alone", v_acquire_release, p_nothing, d_nothing, false, false},
    {"hand over", v_hand_over, p_nothing, d_wait_for_victim, false, true},
    {"wait, first", v_acquire_release, p_held, d_victim_in_front, false, true},
    {"wait, second", v_acquire_release, p_held_and_waited_for, d_victim_behind,
     false, false},
    {"give up, first", v_give_up, p_held, d_gives_up_in_front, false, true},
    {"give up, second", v_give_up, p_held_and_waited_for, d_gives_up_behind,
     false, true},
    {"give up at the grant", v_give_up_at_grant, p_held, d_give_up_race, false,
     true},
    {"holder dies", v_acquire_release, p_dead_holds, d_kill_the_holder, false,
     true},
    {"holder is dead", v_acquire_later, p_dead_holds, d_kill_unnoticed, false,
     false},
    {"open beside the dead", v_everything, p_dead_held, d_nothing, true, false},
    {"open beside a dead waiter", v_open_close, p_dead_waited, d_release, true,
     false},
    {"one before it dies", v_acquire_release, p_dead_waits, d_kill_the_waiter,
     false, true},
    {"lease", v_lease, p_nothing, d_wait_for_victim, false, true},
    {"lease ends", v_acquire_release, p_lease_ends, d_lease_ends, false, true},
    {"break", v_break, p_held_and_waited_for, d_release, false, true},
    {"close while held", v_close_held, p_nothing, d_wait_for_victim, false,
     true},
};

/* ---- one run ------------------------------------------------------------ */

static void victim_main(const struct scenario *sc, int n)
{
    struct seat s = {NULL, NULL};

    if (!sc->early && sit(&s, NULL))
        _exit(3);
    atomic_store(&countdown, n);
    sc->victim(&s);
    atomic_store(&countdown, 0);
    _exit(0);
}

static void note_place(void)
{
    for (int i = 0; i < PLACES; i++) {
        struct place *p = &shared->place[i];

        if (!p->line)
            *p = shared->killed_at;
        if (p->line == shared->killed_at.line &&
            !strcmp(p->file, shared->killed_at.file)) {
            p->kills++;
            return;
        }
    }
}

/* Afterwards: waiter, prober, and then the file. */
static void aftermath(const struct scenario *sc, int64_t since)
{
    /* Who breaks a lock and dies may leave it to the safety look. */
    int limit = sc->victim == v_break ? 2500 : LIMIT_MS;
    struct answer a = {-1, 0, INT64_MAX, "not granted"};

    if (sc->waiter_waits) {
        hear(&waiter, &a, 10000);
        check_grant(&a, since, limit, "waiter");
        ask(&waiter, 'r', 0, 0);
    }
    since = now_ns();
    a = ask(&prober, 'a', 10000, 0);
    check_grant(&a, since, LIMIT_MS, "prober");
    ask(&prober, 'r', 0, 0);
    ask(&prober, 'o', 0, 0); /* who opens buries */
    check_leaks(3);
}

/* False: the victim came through. */
static bool run(const struct scenario *sc, int n)
{
    int status;
    int64_t since;
    pid_t pid;

    memset(&shared->killed_at, 0, sizeof(shared->killed_at));
    atomic_store(&shared->phase, 0);
    sc->prepare();
    pid = fork();
    if (!pid)
        victim_main(sc, n);
    sc->drive(pid);
    waitpid(pid, &status, 0);
    since = now_ns();
    aftermath(sc, since);
    if (WIFSIGNALED(status)) {
        note_place();
        return true;
    }
    if (WEXITSTATUS(status))
        say_fault("the victim failed by itself");
    return false;
}

static int run_scenario(const struct scenario *sc, int only, int *kills)
{
    int faults = 0;

    for (int n = only ? only : 1; n < 2000; n++) {
        bool was_killed;

        fault[0] = '\0';
        was_killed = run(sc, n);
        *kills += was_killed;
        if (fault[0]) {
            printf("shm_points: %s, %s, killed at %s:%d (%d): %s\n", sc->name,
                   is_fair ? "fair" : "unfair", shared->killed_at.file,
                   shared->killed_at.line, n, fault);
            faults++;
        }
        if (!was_killed || only)
            break;
    }
    return faults;
}

static int run_all(const char *only, int n, int *kills)
{
    int faults = 0;

    begin(&holder);
    begin(&waiter);
    begin(&prober);
    look_into_file();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (!only || !strcmp(only, scenarios[i].name))
            faults += run_scenario(&scenarios[i], n, kills);
    end(&holder, 0);
    end(&waiter, 0);
    end(&prober, 0);
    return faults;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL, *tmp = getenv("TMPDIR");
    int n = argc > 2 ? atoi(argv[2]) : 0, kills = 0, faults = 0, places = 0;
    int64_t start = now_ns();
    char path[96];

    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(dir, sizeof(dir), "%s/shm_points.XXXXXX",
             tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp(dir) || shared == MAP_FAILED) {
        perror("shm_points");
        return 2;
    }
    snprintf(url, sizeof(url), "shm://%s", dir);
    for (int fair = 0; fair < 2; fair++) {
        is_fair = fair;
        faults += run_all(only, n, &kills);
    }
    while (places < PLACES && shared->place[places].line)
        places++;
    if (getenv("SHM_POINTS_SHOW"))
        for (int i = 0; i < places; i++)
            printf("%s:%d %d\n", shared->place[i].file, shared->place[i].line,
                   shared->place[i].kills);
    snprintf(path, sizeof(path), "%s/locks", dir);
    unlink(path);
    rmdir(dir);
    printf("shm_points: %d kills at %d places in %.1f s, worst wait %.2f ms, "
           "%d faults: %s\n",
           kills, places, (double)(now_ns() - start) / 1e9, (double)worst / 1e6,
           faults, faults ? "FAILED" : "ok");
    return faults ? 1 : 0;
}
