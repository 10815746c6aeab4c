/*
 * Kills processes that lock in shared memory, at random, and looks for what
 * that must not do: two holders at once, a token that does not rise, a lock
 * that stays stuck, cells, slots and names that stay taken.
 *
 *     shm_kill [kills [seed]]
 *
 * Workers take locks (fair and unfair; for ever, timed, tried, with a lease)
 * and bump a plain counter under each. The parent kills one of them, then has
 * the prober take the name that the dead one was busy with, and measures how
 * long after the kill that is granted. Parent and prober are never killed.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The bound of the contract; instrumented code is not held to it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMIT_MS = 2000 };
#else
enum { LIMIT_MS = 100 };
#endif
enum { WORKERS = 8, NAMES = 4 };

struct guarded { /* by the lock of that number; plain on purpose */
    volatile uint64_t counter, token;
    volatile pid_t owner;
};

struct worker {
    _Atomic pid_t pid;
    _Atomic int busy_with;         /* name, -1 */
    _Atomic uint64_t meant[NAMES]; /* increments begun */
    _Atomic uint64_t done[NAMES];  /* and finished */
};

struct shared {
    struct guarded guarded[NAMES];
    struct worker worker[WORKERS + 1]; /* the last is the prober */
    _Atomic uint64_t overlaps, tokens, grants, given_up, errors;
    _Atomic int stop;
};

static struct shared *shared;
static char dir[64], url[80];

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

static uint32_t chance(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33);
}

static void die(const char *what, const hf_error *err)
{
    fprintf(stderr, "shm_kill: %s: %s\n", what, err ? err->text : "");
    atomic_fetch_add(&shared->errors, 1);
    _exit(1);
}

/* Of a process that was killed the kernel has closed the files, and with them
 * the lock may be free, a moment before it says that the process is gone. */
static bool is_gone(pid_t pid)
{
    struct pollfd p = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
    bool gone;

    if (p.fd < 0)
        return errno == ESRCH;
    gone = poll(&p, 1, 50) == 1;
    close(p.fd);
    return gone;
}

/* What a holder does: find nobody else, see the token rise, count. */
static void guarded_work(int name, struct worker *me, uint64_t token, long spin)
{
    struct guarded *g = &shared->guarded[name];
    pid_t pid = getpid(), was = g->owner;
    uint64_t value;

    if (was && was != pid && !is_gone(was))
        atomic_fetch_add(&shared->overlaps, 1);
    g->owner = pid;
    if (token <= g->token)
        atomic_fetch_add(&shared->tokens, 1);
    g->token = token;
    atomic_fetch_add(&me->meant[name], 1);
    value = g->counter;
    for (volatile long i = 0; i < spin; i++)
        ;
    if (g->owner != pid)
        atomic_fetch_add(&shared->overlaps, 1);
    g->counter = value + 1;
    atomic_fetch_add(&me->done[name], 1);
    atomic_fetch_add(&shared->grants, 1);
    g->owner = 0;
}

static void open_all(hf_client **client, hf_lock **locks)
{
    hf_error err = HF_ERROR_INIT;

    if (hf_open(url, NULL, client, &err))
        die("open", &err);
    for (int i = 0; i < NAMES; i++) {
        hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
        char name[16];

        snprintf(name, sizeof(name), "name-%d", i);
        opt.fairness = i % 2 ? HF_UNFAIR : HF_FAIR;
        if (hf_lock_new(*client, name, HF_CSTRING, &opt, &locks[i], &err))
            die("new", &err);
    }
}

static void close_all(hf_client *client, hf_lock **locks)
{
    for (int i = 0; i < NAMES; i++)
        hf_lock_free(locks[i]);
    hf_close(client);
}

static void one_lock(hf_lock **locks, struct worker *me, uint64_t *seed)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int name = (int)(chance(seed) % NAMES), rc;
    hf_error err = HF_ERROR_INIT;
    uint64_t token = 0;

    switch (chance(seed) % 8) {
    case 0:
        opt.wait_ms = 0;
        break;
    case 1:
    case 2:
        opt.wait_ms = 1 + chance(seed) % 3;
        break;
    case 3:
        opt.lease_ms = 5000; /* longer than any stall here */
        break;
    }
    atomic_store(&me->busy_with, name);
    rc = hf_lock_acquire(locks[name], &opt, &err);
    if (rc == HF_EBUSY || rc == HF_ETIMEDOUT) {
        atomic_fetch_add(&shared->given_up, 1);
        return;
    }
    if (rc)
        die("acquire", &err);
    hf_lock_token(locks[name], &token);
    guarded_work(name, me, token, chance(seed) % 4000);
    if (chance(seed) % 4 == 0)
        nap_us(chance(seed) % 200);
    rc = hf_lock_release(locks[name], &err);
    if (rc)
        die("release", &err);
    atomic_store(&me->busy_with, -1);
}

static void worker_main(int number, uint64_t seed)
{
    struct worker *me = &shared->worker[number];
    hf_lock *locks[NAMES];
    hf_client *client;

    open_all(&client, locks);
    while (!atomic_load(&shared->stop)) {
        one_lock(locks, me, &seed);
        if (chance(&seed) % 2)
            nap_us(chance(&seed) % 300);
        if (chance(&seed) % 256 == 0) { /* so that this is interrupted, too */
            close_all(client, locks);
            open_all(&client, locks);
        }
    }
    close_all(client, locks);
    _exit(0);
}

/* Takes the names that are written to it, and answers when it had one. */
static void prober_main(int in, int out)
{
    hf_lock *locks[NAMES];
    hf_client *client;
    unsigned char name;

    open_all(&client, locks);
    while (read(in, &name, 1) == 1) {
        hf_error err = HF_ERROR_INIT;
        uint64_t token = 0;
        int64_t at = -1;

        if (hf_lock_timed(locks[name], 10000, &err)) {
            fprintf(stderr, "shm_kill: prober: %s\n", err.text);
        } else {
            at = now_ns();
            hf_lock_token(locks[name], &token);
            guarded_work(name, &shared->worker[WORKERS], token, 10);
            hf_lock_release(locks[name], NULL);
        }
        if (write(out, &at, sizeof(at)) != sizeof(at))
            break;
    }
    close_all(client, locks);
    _exit(0);
}

static void start(int number, uint64_t seed)
{
    pid_t pid = fork();

    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    if (!pid)
        worker_main(number, seed);
    atomic_store(&shared->worker[number].pid, pid);
}

/* The name whose holder is to die, or any worker's. */
static int choose(uint64_t *seed, int *name)
{
    if (chance(seed) % 2) {
        for (int tries = 0; tries < 1000; tries++) {
            int n = (int)(chance(seed) % NAMES);
            pid_t owner = shared->guarded[n].owner;

            for (int i = 0; owner && i < WORKERS; i++)
                if (atomic_load(&shared->worker[i].pid) == owner) {
                    *name = n;
                    return i;
                }
        }
    }
    *name = -1;
    return (int)(chance(seed) % WORKERS);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* How long those that take part have waited for a processor so far: on a busy
 * machine that is no fault of ours. */
static void read_cpu_waits(int64_t *waits)
{
    for (int i = 0; i <= WORKERS; i++) {
        char path[40], text[100] = "";
        long long ran, waited = 0;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/schedstat",
                 (int)atomic_load(&shared->worker[i].pid));
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
            sscanf(text, "%lld %lld", &ran, &waited) != 2)
            waited = 0;
        close(fd);
        waits[i] = waited;
    }
}

static int64_t cpu_waited(const int64_t *before, int except)
{
    int64_t now[WORKERS + 1], sum = 0;

    read_cpu_waits(now);
    for (int i = 0; i <= WORKERS; i++)
        if (i != except)
            sum += now[i] - before[i];
    return sum;
}

/* How long after the kill somebody had the lock. */
static int64_t kill_one(uint64_t *seed, int to_prober, int from_prober,
                        int *late)
{
    int64_t waits[WORKERS + 1], waited, at, granted = -1, took;
    unsigned char byte;
    struct worker *w;
    int name, victim;
    bool held;

    read_cpu_waits(waits);
    victim = choose(seed, &name);
    w = &shared->worker[victim];
    kill(atomic_load(&w->pid), SIGKILL);
    at = now_ns();
    held = name >= 0;
    if (name < 0)
        name = atomic_load(&w->busy_with);
    if (name < 0)
        name = (int)(chance(seed) % NAMES);
    byte = (unsigned char)name;
    if (write(to_prober, &byte, 1) != 1 ||
        read(from_prober, &granted, sizeof(granted)) != sizeof(granted)) {
        fprintf(stderr, "shm_kill: the prober is gone\n");
        exit(1);
    }
    waited = cpu_waited(waits, victim);
    waitpid(atomic_load(&w->pid), NULL, 0);
    start(victim, chance(seed));
    took = granted < 0 ? 10000000000LL : granted - at;
    if (took > 20000000)
        printf("shm_kill: %lld us for name %d, %s; %lld us of waiting for a "
               "processor\n",
               (long long)took / 1000, name,
               held ? "whose holder was killed" : "at which one was killed",
               (long long)waited / 1000);
    *late += took - waited > LIMIT_MS * 1000000LL;
    return took;
}

/* What is in the file when nobody is there. */
static int leaks(void)
{
    int fd = -1, found = 0;
    char path[96];
    hf_client *client;
    struct shm_file *f;

    if (hf_open(url, NULL, &client, NULL)) /* buries the dead */
        return -1;
    hf_close(client);
    snprintf(path, sizeof(path), "%s/locks", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
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

static int lost_counts(void)
{
    int wrong = 0;

    for (int n = 0; n < NAMES; n++) {
        uint64_t meant = 0, done = 0, counted = shared->guarded[n].counter;

        for (int i = 0; i <= WORKERS; i++) {
            meant += atomic_load(&shared->worker[i].meant[n]);
            done += atomic_load(&shared->worker[i].done[n]);
        }
        if (counted < done || counted > meant)
            wrong++;
    }
    return wrong;
}

static int report(int64_t *took, int kills, int late, double seconds)
{
    uint64_t overlaps = atomic_load(&shared->overlaps);
    uint64_t tokens = atomic_load(&shared->tokens);
    uint64_t errors = atomic_load(&shared->errors);
    int counts = lost_counts(), left = leaks(), half, p99;
    bool good;

    p99 = kills * 99 / 100;
    half = kills / 2;
    qsort(took, (size_t)kills, sizeof(*took), by_value);
    good = !overlaps && !tokens && !errors && !counts && !left && !late;
    printf("shm_kill: after a kill: p50 %.2f ms, p99 %.2f ms, worst %.2f ms; "
           "%d over %d ms\n",
           (double)took[half] / 1e6, (double)took[p99] / 1e6,
           (double)took[kills - 1] / 1e6, late, LIMIT_MS);
    printf("shm_kill: %d kills in %.1f s, %llu grants, %llu given up; %llu "
           "overlaps, %d counts wrong, %llu tokens not rising, %llu errors, "
           "%d left behind: %s\n",
           kills, seconds, (unsigned long long)atomic_load(&shared->grants),
           (unsigned long long)atomic_load(&shared->given_up),
           (unsigned long long)overlaps, counts, (unsigned long long)tokens,
           (unsigned long long)errors, left, good ? "ok" : "FAILED");
    return good ? 0 : 1;
}

static void finish(int to_prober)
{
    atomic_store(&shared->stop, 1);
    close(to_prober);
    while (wait(NULL) > 0)
        ;
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? atoi(argv[1]) : 2000, ask[2], answer[2], rc,
        late = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)now_ns();
    const char *tmp = getenv("TMPDIR");
    int64_t *took, begin = now_ns();
    char path[96];
    pid_t prober;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("shm_kill: seed %llu\n", (unsigned long long)seed);
    snprintf(dir, sizeof(dir), "%s/shm_kill.XXXXXX",
             tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    took = calloc((size_t)kills + 1, sizeof(*took));
    if (!mkdtemp(dir) || shared == MAP_FAILED || !took || pipe(ask) ||
        pipe(answer)) {
        perror("shm_kill");
        free(took);
        return 2;
    }
    snprintf(url, sizeof(url), "shm://%s", dir);
    prober = fork();
    if (!prober) {
        close(ask[1]);
        prober_main(ask[0], answer[1]);
    }
    atomic_store(&shared->worker[WORKERS].pid, prober);
    close(ask[0]);
    fcntl(ask[1], F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < WORKERS; i++)
        start(i, chance(&seed));
    nap_us(50000);
    for (int i = 0; i < kills; i++) {
        took[i] = kill_one(&seed, ask[1], answer[0], &late);
        nap_us(chance(&seed) % 8000);
    }
    finish(ask[1]);
    rc = report(took, kills, late, (double)(now_ns() - begin) / 1e9);
    snprintf(path, sizeof(path), "%s/locks", dir);
    unlink(path);
    rmdir(dir);
    free(took);
    return rc;
}
