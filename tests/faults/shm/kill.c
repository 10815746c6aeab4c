/*
 * Kills random processes that lock in shared memory, and checks the contract. A
 * run consists of acts, each of which kills other victims: the holder, a
 * waiter, both at once, or any worker.
 *
 *     shm_kill [kills [seed]]
 *
 * Workers acquire locks of all kinds (with and without a time limit, by trying,
 * with a lease) and increment a plain counter under each lock that they hold
 * exclusively. The parent kills a worker. Then the prober acquires the lock
 * with which the dead worker was busy, and the parent measures how long after
 * the kill it is granted. The parent and the prober are never killed. After
 * each act the checkers (history.h) judge the whole history.
 */
#include "kill.h"

#include "../../lib/canary.h"
#include "../../lib/cpu_wait.h"
#include "../../lib/tally.h"
#include "../../lib/wait.h"
#include "backends/shm/layout.h"

#include <fcntl.h>
#include <holdfast.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct shared *shared;
struct locks_place place;

static struct canary canary;
static struct history history;
static struct history doubtful; /* writes whose outcome is unknown */
static uint32_t processes;
static int cases, failed;
static struct tally_line total;

static void start(int seat, uint64_t seed)
{
    struct worker *w = &shared->worker[seat];
    uint32_t process = processes++;
    pid_t pid;

    atomic_store(&w->len, 0);
    atomic_store(&w->about_to, 0);
    atomic_store(&w->doing, IDLE);
    pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    if (!pid)
        worker_main(seat, process, seed);
    atomic_store(&w->pid, pid);
}

/* Adds the log of a process that has ended to the history; returns `at`, or the
 * time of the log's last event if that is later. */
static int64_t collect(int seat, int64_t at)
{
    struct worker *w = &shared->worker[seat];
    uint32_t len = atomic_load(&w->len);

    for (uint32_t i = 0; i < len; i++)
        history_add(&history, &w->log[i]);
    if (atomic_load(&w->about_to) == len + 1)
        history_add(&doubtful, &w->log[len]);
    return len && w->log[len - 1].at > at ? w->log[len - 1].at : at;
}

static void bury(int seat, int64_t killed_at)
{
    struct worker *w = &shared->worker[seat];
    struct history_event e = {.kind = HISTORY_KILLED, .until = HISTORY_NEVER};

    waitpid(atomic_load(&w->pid), NULL, 0);
    e.at = collect(seat, killed_at);
    if (!atomic_load(&w->len))
        return; /* the process did nothing */
    e.process = e.owner = w->log[0].process;
    history_add(&history, &e);
}

/* Decides which of the writes that killed processes had announced were done,
 * and adds these to the history: a write was done if the counter has reached
 * the announced value and no other process wrote that value. */
static void settle_doubts(void)
{
    for (size_t i = 0; i < doubtful.len; i++) {
        const struct history_event *d = &doubtful.event[i];
        bool done = true;

        for (size_t j = 0; done && j < history.len; j++)
            done = history.event[j].kind != HISTORY_WRITE ||
                   history.event[j].lock != d->lock ||
                   history.event[j].value != d->value;
        done = done && shared->guarded[d->lock].counter >= d->value;
        if (done)
            history_add(&history, d);
    }
    history_clear(&doubtful);
}

enum victim { HOLDER, WAITER, HOLDER_AND_WAITER, ANY };

static const struct act {
    const char *name;
    enum victim victim;
} acts[] = {{"the holder", HOLDER},
            {"a waiter", WAITER},
            {"the holder and a waiter", HOLDER_AND_WAITER},
            {"any worker", ANY}};

/* Returns a worker that is busy in this way (`doing`) with this lock (-1 for
 * any lock), or a random worker if none is found soon. */
static int find(uint64_t *seed, int doing, int name)
{
    int seat = 0;

    for (int tries = 0; tries < 2000; tries++) {
        const struct worker *w;

        seat = (int)(chance(seed) % WORKERS);
        w = &shared->worker[seat];
        if (atomic_load(&w->doing) == doing &&
            (name < 0 || atomic_load(&w->busy_with) == name))
            break;
    }
    return seat;
}

static void read_cpu_waits(int64_t *waits)
{
    for (int i = 0; i < SEATS; i++)
        waits[i] = cpu_wait_of_first(atomic_load(&shared->worker[i].pid));
}

/* Returns how long the processes have waited for a CPU since `before` was read.
 * A dead process counts twice: only the wait of its first thread can be read,
 * but its helper thread had to end too, and has waited about as long. */
static int64_t cpu_waited(const int64_t *before, const bool *is_dead)
{
    int64_t now[SEATS], sum = 0;

    read_cpu_waits(now);
    for (int i = 0; i < SEATS; i++)
        sum += (now[i] - before[i]) * (is_dead[i] ? 2 : 1);
    return sum;
}

struct prober {
    int ask, answer;
    pid_t pid;
};

static int64_t probe(const struct prober *p, int name)
{
    unsigned char byte = (unsigned char)name;
    int64_t granted = -1;

    if (write(p->ask, &byte, 1) != 1 ||
        read(p->answer, &granted, sizeof(granted)) != sizeof(granted)) {
        printf("Bail out! the prober is gone\n");
        exit(1);
    }
    return granted;
}

/* How long the processes and the machine had been delayed when blame_begin()
 * was called. blame_end() returns the delays since then. */
struct blame {
    int64_t waits[SEATS], stalled, stood;
};

static struct blame blame_begin(void)
{
    struct blame b = {.stalled = wait_stalled(),
                      .stood = canary_stood(&canary)};

    read_cpu_waits(b.waits);
    return b;
}

static int64_t blame_end(const struct blame *b, const bool *is_dead)
{
    int64_t waited = cpu_waited(b->waits, is_dead);
    int64_t stalled = wait_stalled() - b->stalled;

    return (waited > stalled ? waited : stalled) +
           canary_stood_by_now(&canary) - b->stood;
}

/* Kills the victims and starts others in their place. Returns how long after
 * the kill the prober was granted the lock that the first victim had used. Adds
 * 1 to *late if that took too long. */
static int64_t kill_some(enum victim victim, uint64_t *seed,
                         const struct prober *prober, int *late)
{
    enum { WORTH_A_LOOK = 20000000 };
    const struct blame blame = blame_begin();
    int64_t waited = 0, at, granted, took;
    int first, second = -1, name;
    bool is_dead[SEATS] = {false};

    first = victim == ANY
                ? (int)(chance(seed) % WORKERS)
                : find(seed, victim == WAITER ? ACQUIRING : HOLDING, -1);
    name = atomic_load(&shared->worker[first].busy_with);
    if (victim == HOLDER_AND_WAITER)
        second = find(seed, ACQUIRING, name);
    at = wait_now();
    kill(atomic_load(&shared->worker[first].pid), SIGKILL);
    is_dead[first] = true;
    if (second >= 0 && second != first) {
        kill(atomic_load(&shared->worker[second].pid), SIGKILL);
        is_dead[second] = true;
    }
    granted = probe(prober, name);
    took = granted < 0 ? 10000000000LL : granted - at;
    if (took > WORTH_A_LOOK) {
        waited = blame_end(&blame, is_dead);
        printf("# %lld us for name %d; %lld us of waiting for a processor or "
               "the machine\n",
               (long long)took / 1000, name, (long long)waited / 1000);
    }
    for (int i = 0; i < WORKERS; i++)
        if (is_dead[i]) {
            bury(i, at);
            start(i, chance(seed));
        }
    *late += took - waited > LIMIT_MS * 1000000LL;
    return took;
}

static void tap(bool ok, const char *act, const char *what)
{
    printf("%s %d - %s is killed: %s\n", ok ? "ok" : "not ok", ++cases, act,
           what);
    failed += !ok;
}

/* Checks the history of an act; `excused` is how long the machine kept
 * processes from running. */
static void judge(const char *act, int64_t excused)
{
    static const struct {
        const char *what;
        history_check_fn *check;
    } checks[] = {
        {"no two hold it at a time (CLAIM)", history_check_claim},
        {"no write is lost, no lower token accepted (ME)", history_check_me},
        {"tokens rise, none twice (TOK)", history_check_tok},
        {"a grant has one owner (TURN)", history_check_turn},
        {"no hold outlasts its lease (CAP)", history_check_cap},
        {"no waiter is forgotten (BOUND, WAKE)", history_check_waits},
        {"every call returns (RET)", history_check_ret},
        {"nothing is left behind (LEAK)", history_check_leak},
    };
    const struct history_rules rules = {.wake_ns = 2000000000,
                                        .grace_ns =
                                            LIMIT_MS * 1000000LL + excused,
                                        .stop_keeps = true};

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        struct history_verdict v = {NULL, 0, ""};
        bool ok = checks[i].check(&history, &rules, &v);

        if (!ok)
            printf("# %s: %s\n", v.check, v.text);
        tap(ok, act, checks[i].what);
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void report(const char *act, int64_t *took, int kills, int late)
{
    int half = kills / 2, p99 = kills * 99 / 100;
    char what[60];

    qsort(took, (size_t)kills, sizeof(*took), by_value);
    printf("# %d kills, %llu grants, %llu given up, %zu events; the next after "
           "p50 %.2f ms, p99 %.2f ms, worst %.2f ms\n",
           kills, (unsigned long long)atomic_load(&shared->grants),
           (unsigned long long)atomic_load(&shared->given_up), history.len,
           (double)took[half] / 1e6, (double)took[p99] / 1e6,
           (double)took[kills - 1] / 1e6);
    snprintf(what, sizeof(what), "the next has it within %d ms", LIMIT_MS);
    tap(!late, act, what);
    tap(!atomic_load(&shared->errors) && atomic_load(&shared->grants) > 0, act,
        "no other call fails");
}

/* Counts what the file still contains when it has no clients; -1 on failure. */
static int leaks(void)
{
    int fd = -1, found = 0;
    hf_client *client;
    struct shm_file *f;

    /* Opening a client cleans up after dead ones. */
    if (hf_open(place.url, NULL, &client, NULL))
        return -1;
    hf_close(client);
    fd = open(place.file, O_RDONLY | O_CLOEXEC);
    f = mmap(NULL, sizeof(*f), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (f == MAP_FAILED)
        return -1;
    for (unsigned i = 0; i < SHM_CELLS; i++)
        found += atomic_load(&f->cell[i].owner) != 0;
    for (unsigned i = 0; i < SHM_SLOTS; i++)
        found += atomic_load(&f->slot[i].state) != SHM_SLOT_FREE;
    for (unsigned i = 0; i < SHM_NAMES; i++)
        found += atomic_load(&f->hash[i]) != 0;
    munmap(f, sizeof(*f));
    return found;
}

static void start_prober(struct prober *p)
{
    uint32_t process = processes++;
    int ask[2], answer[2];

    if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC)) {
        perror("pipe");
        exit(2);
    }
    p->pid = fork();
    if (!p->pid) {
        close(ask[1]);
        prober_main(process, ask[0], answer[1]);
    }
    atomic_store(&shared->worker[PROBER].pid, p->pid);
    close(ask[0]);
    close(answer[1]);
    p->ask = ask[1];
    p->answer = answer[0];
}

static void finish(const struct prober *prober)
{
    struct history_event end = {.kind = HISTORY_LEFT, .until = HISTORY_NEVER};

    atomic_store(&shared->stop, 1);
    close(prober->ask);
    close(prober->answer);
    while (wait(NULL) > 0)
        ;
    for (int i = 0; i < SEATS; i++)
        collect(i, 0);
    end.value = (uint64_t)leaks();
    end.at = wait_now();
    history_add(&history, &end);
    end.kind = HISTORY_END;
    history_add(&history, &end);
    settle_doubts();
    history_sort(&history);
}

static void play(const struct act *act, int kills, int64_t *took,
                 uint64_t *seed)
{
    int64_t stolen = wait_stolen(), stood;
    struct prober prober;
    int late = 0;

    memset(shared, 0, offsetof(struct shared, worker));
    for (int i = 0; i < SEATS; i++)
        memset(&shared->worker[i], 0, offsetof(struct worker, log));
    history_clear(&history);
    processes = 0;
    if (!canary_start(&canary)) {
        perror("canary");
        exit(2);
    }
    start_prober(&prober);
    for (int i = 0; i < WORKERS; i++)
        start(i, chance(seed));
    nap_us(50000);
    for (int i = 0; i < kills; i++) {
        took[i] = kill_some(act->victim, seed, &prober, &late);
        nap_us(chance(seed) % 8000);
    }
    stood = canary_stood_by_now(&canary);
    canary_stop(&canary);
    finish(&prober);
    total.kills += (uint64_t)kills;
    total.grants += atomic_load(&shared->grants);
    report(act->name, took, kills, late);
    judge(act->name, stood + wait_stolen() - stolen);
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? atoi(argv[1]) : 2000;
    uint64_t seed =
        argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)wait_now();
    int64_t *took = calloc((size_t)kills + 1, sizeof(*took));

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %llu\n", (unsigned long long)seed);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!locks_place_make(&place, "shm_kill") || shared == MAP_FAILED ||
        !took) {
        perror("shm_kill");
        free(took);
        return 2;
    }
    history_init(&history);
    history_init(&doubtful);
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        play(&acts[i], kills / 4, took, &seed);
    printf("1..%d\n", cases);
    total.violations = (uint64_t)failed;
    tally_line_print(&total);
    history_fini(&history);
    history_fini(&doubtful);
    locks_place_remove(&place);
    free(took);
    return failed ? 1 : 0;
}
