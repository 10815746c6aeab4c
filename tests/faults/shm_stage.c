#include "shm_stage.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct stage *stage;
struct shm_file *stage_file;
bool stage_fair;
char stage_fault[200], stage_path[96], stage_url[80];
int64_t stage_worst_ns;
uint64_t stage_last_token;
void (*stage_at_point)(void);

static char dir[64];
static int cases, failed;
static _Atomic int countdown; /* 0: not armed */

void hf__shm_point(const char *file, int line); /* called by the backend */

int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void nap_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}

/* ---- the stage ----------------------------------------------------------- */

void stage_build(const char *name)
{
    const char *tmp = getenv("TMPDIR");

    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(dir, sizeof(dir), "%s/%s.XXXXXX",
             tmp && strlen(tmp) < 40 ? tmp : "/tmp", name);
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED || !mkdtemp(dir)) {
        perror(name);
        exit(2);
    }
    snprintf(stage_url, sizeof(stage_url), "shm://%s", dir);
    snprintf(stage_path, sizeof(stage_path), "%s/locks", dir);
}

void stage_clear(void)
{
    unlink(stage_path);
    rmdir(dir);
}

void stage_map(void)
{
    int fd = open(stage_path, O_RDONLY | O_CLOEXEC);

    if (stage_file)
        munmap(stage_file, sizeof(*stage_file));
    stage_file = mmap(NULL, sizeof(*stage_file), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (stage_file == MAP_FAILED) {
        perror(stage_path);
        exit(2);
    }
}

void stage_blame(const char *what)
{
    if (!stage_fault[0])
        snprintf(stage_fault, sizeof(stage_fault), "%s", what);
}

void stage_case(int faults, const char *fmt, ...)
{
    va_list ap;

    printf("%s %d - ", faults ? "not ok" : "ok", ++cases);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    failed += faults != 0;
}

int stage_plan(void)
{
    printf("1..%d\n", cases);
    return failed ? 1 : 0;
}

void stage_note_place(void)
{
    for (int i = 0; i < STAGE_PLACES; i++) {
        struct stage_place *p = &stage->place[i];

        if (!p->line)
            *p = stage->at;
        if (p->line == stage->at.line && !strcmp(p->file, stage->at.file)) {
            p->visits++;
            return;
        }
    }
}

int stage_count_places(bool show)
{
    int n = 0;

    for (; n < STAGE_PLACES && stage->place[n].line; n++)
        if (show)
            printf("# %s:%d %d\n", stage->place[n].file, stage->place[n].line,
                   stage->place[n].visits);
    return n;
}

void stage_arm(int n)
{
    atomic_store(&countdown, n);
}

void hf__shm_point(const char *path, int line)
{
    const char *name = strrchr(path, '/');

    if (!atomic_load(&countdown) || atomic_fetch_sub(&countdown, 1) != 1)
        return;
    snprintf(stage->at.file, sizeof(stage->at.file), "%s",
             name ? name + 1 : path);
    stage->at.line = line;
    if (stage_at_point) {
        stage_at_point();
        return;
    }
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* ---- a seat -------------------------------------------------------------- */

int sit(struct seat *s, hf_error *err)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    int rc = hf_open(stage_url, NULL, &s->client, err);

    opt.fairness = stage_fair ? HF_FAIR : HF_UNFAIR;
    if (!rc)
        rc = hf_lock_new(s->client, "x", 1, &opt, &s->lock, err);
    return rc;
}

void stand_up(struct seat *s)
{
    hf_lock_free(s->lock);
    hf_close(s->client);
}

/* Of a process that was killed the kernel has closed the files, and with them
 * the lock may be free, a moment before it says that the process is gone. */
static bool is_gone(pid_t pid)
{
    struct pollfd p = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
    bool gone;

    if (p.fd < 0)
        return true;
    gone = poll(&p, 1, 50) == 1;
    close(p.fd);
    return gone;
}

static hf_cancel cancel = HF_CANCEL_INIT;

static void on_signal(int sig)
{
    (void)sig;
    hf_cancel_fire(&cancel); /* made for it: NOLINT(bugprone-signal-handler) */
}

int enter(struct seat *s, int64_t wait_ms, int64_t lease_ms, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int rc, other;

    hf_cancel_init(&cancel);
    opt.cancel = &cancel;
    opt.wait_ms = wait_ms;
    opt.lease_ms = lease_ms;
    rc = hf_lock_acquire(s->lock, &opt, err);
    if (rc)
        return rc;
    other = atomic_exchange(&stage->inside, getpid());
    if (other && !is_gone(other))
        atomic_fetch_add(&stage->overlaps, 1);
    return 0;
}

int leave(struct seat *s, hf_error *err)
{
    int me = getpid();

    atomic_compare_exchange_strong(&stage->inside, &me, 0);
    return hf_lock_release(s->lock, err);
}

/* ---- actors -------------------------------------------------------------- */

struct order {
    char verb;
    int64_t wait_ms, lease_ms;
};

static int obey(struct seat *s, const struct order *o, hf_error *err)
{
    switch (o->verb) {
    case 'a':
        return enter(s, o->wait_ms, o->lease_ms, err);
    case 'r':
        return leave(s, err);
    case 'b':
        return hf_break(s->client, "x", 1, err);
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

    signal(SIGUSR1, on_signal);
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

void actor_begin(struct actor *a)
{
    struct answer answer;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        perror("socketpair");
        exit(2);
    }
    a->fd = fds[0];
    a->pid = fork();
    if (!a->pid) {
        close(fds[0]);
        actor_main(fds[1]);
    }
    close(fds[1]);
    if (!actor_hear(a, &answer, 12000) || answer.rc)
        stage_blame("an actor could not open");
}

void actor_end(struct actor *a, int sig)
{
    if (sig)
        kill(a->pid, sig);
    else
        actor_tell(a, 'q', 0, 0);
    waitpid(a->pid, NULL, 0);
    close(a->fd);
    a->pid = 0;
}

void actor_tell(struct actor *a, char verb, int64_t wait_ms, int64_t lease_ms)
{
    struct order o = {verb, wait_ms, lease_ms};

    if (write(a->fd, &o, sizeof(o)) != sizeof(o))
        perror("actor_tell");
}

bool actor_hear(struct actor *a, struct answer *answer, int timeout_ms)
{
    struct pollfd p = {a->fd, POLLIN, 0};

    return poll(&p, 1, timeout_ms) == 1 &&
           read(a->fd, answer, sizeof(*answer)) == sizeof(*answer);
}

struct answer actor_ask(struct actor *a, char verb, int64_t wait_ms,
                        int64_t lease_ms)
{
    struct answer answer = {-1, 0, 0, "no answer"};

    actor_tell(a, verb, wait_ms, lease_ms);
    if (!actor_hear(a, &answer, 12000) || answer.rc)
        stage_blame(answer.text);
    else if (verb == 'a' && answer.token <= stage_last_token)
        stage_blame("a token did not rise");
    if (!answer.rc && verb == 'a')
        stage_last_token = answer.token;
    return answer;
}

void check_grant(const struct answer *a, int64_t since, int limit_ms,
                 const char *who)
{
    char text[100];

    if (a->rc || a->at - since > limit_ms * 1000000LL) {
        snprintf(text, sizeof(text), "the %s got it after %.1f ms (%d)", who,
                 (double)(a->at - since) / 1e6, a->rc);
        stage_blame(text);
        return;
    }
    if (a->at - since > stage_worst_ns && limit_ms == STAGE_LIMIT_MS)
        stage_worst_ns = a->at - since;
    if (a->token <= stage_last_token)
        stage_blame("the token did not rise");
    stage_last_token = a->token;
}

/* ---- what is in the file --------------------------------------------------
 */

int queued(void)
{
    int n = 0;

    for (unsigned i = 0; i < SHM_MAP_LEN; i++)
        n += __builtin_popcountll(atomic_load(&stage_file->entry[0].cells[i]));
    return n;
}

bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
           info.si_pid;
}

void await_queue(int n, pid_t victim)
{
    int64_t until = now_ns() + 2000000000LL;

    while (queued() < n && now_ns() < until) {
        if (victim && (has_ended(victim) || atomic_load(&stage->paused)))
            return;
        nap_us(20);
    }
    if (queued() < n)
        stage_blame("the queue did not fill");
}

void check_leaks(int clients)
{
    struct shm_file *f = stage_file;
    int cells = 0, slots = 0, names = 0;
    char text[100];

    for (unsigned i = 0; i < SHM_CELLS; i++)
        cells += atomic_load(&f->cell[i].owner) != 0;
    for (unsigned i = 0; i < SHM_SLOTS; i++)
        slots += atomic_load(&f->slot[i].state) != SHM_SLOT_FREE;
    for (unsigned i = 0; i < SHM_NAMES; i++)
        names += atomic_load(&f->hash[i]) != 0;
    snprintf(text, sizeof(text), "left behind: %d cells, %d slots, %d names",
             cells, slots - clients, names - 1);
    if (cells || slots != clients || names != 1 || queued())
        stage_blame(text);
}
