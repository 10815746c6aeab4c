/*
 * Flips bits in the shared-memory file while clients use it. Whatever value any
 * byte has, no process may end or write elsewhere (ASan checks this), and no
 * call may be delayed for more than a second beyond its limit. Calls may return
 * anything.
 *
 *     shm_flips single SHARD SHARDS     every bit of each kind of object
 *     shm_flips random [SEED [ROUNDS]]  100 flips in each round, under load
 *     shm_flips one REGION BIT          repeats one trial of `single`
 *
 * A worker process runs one trial after the other, each with a fresh file. If
 * the worker dies, or one of its calls does not return, this process prints the
 * flip, and the next worker continues after that trial.
 */
#include "flips.h"

#include "../../lib/shm_dir.h"
#include "../../lib/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 1000, FAULTS_MAX = 20, HANG_MS = 5000 };

struct canary flips_canary;
struct flips_note *flips_note;
struct shm_file *flips_file;
char flips_url[120];

static struct locks_place place;
static int fd;
static struct shm_header golden;
static int cases, failed;

static void *map(int from, size_t len)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_SHARED | (from < 0 ? MAP_ANONYMOUS : 0), from, 0);

    if (at == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return at;
}

static void build(void)
{
    hf_client *client;

    if (!locks_place_make(&place, "shm_flips") ||
        !canary_start(&flips_canary)) {
        perror("shm_flips");
        exit(2);
    }
    snprintf(flips_url, sizeof(flips_url), "%s?connect_timeout=%dms", place.url,
             OPEN_MS);
    flips_note = map(-1, sizeof(*flips_note));
    /* Retries, because the machine may stall for the whole timeout. */
    while (hf_open(flips_url, NULL, &client, NULL))
        wait_tick();
    hf_close(client);
    fd = open(place.file, O_RDWR | O_CLOEXEC);
    flips_file = map(fd, sizeof(*flips_file));
    memcpy(&golden, &flips_file->header, sizeof(golden));
}

/* Empties the file for the next trial. The file's pages stay allocated, because
 * memory may be full when a hole must be filled (SIGBUS). An abandoned
 * hf_open() may still run on its thread, mistake the file for one of another
 * version and truncate it. Therefore this function waits until no client has
 * locked the file, and allocates its pages again if necessary. */
static void make_anew(void)
{
    int rc = flock(fd, LOCK_EX) ? errno
                                : posix_fallocate(fd, 0, sizeof(*flips_file));

    if (rc) {
        snprintf(flips_note->fault, sizeof(flips_note->fault), "%s: %s",
                 place.file, strerror(rc));
        _exit(1);
    }
    memset(flips_file, 0, sizeof(*flips_file));
    memcpy(&flips_file->header, &golden, sizeof(golden));
    flock(fd, LOCK_UN);
}

struct plan {
    const char *name;
    uint32_t first, step, end; /* numbers of trials */
    uint64_t seed;             /* 0 for single flips */
};

static void find_single(uint32_t n, unsigned *region, size_t *bit)
{
    *region = 0;
    while (n >= scene_region_len(*region))
        n -= (uint32_t)scene_region_len((*region)++);
    *bit = n;
}

static uint32_t singles(void)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < scene_regions(); i++)
        n += (uint32_t)scene_region_len(i);
    return n;
}

static void play(const struct plan *plan, uint32_t n)
{
    unsigned region;
    size_t bit;

    make_anew();
    flips_begin();
    if (plan->seed) {
        storm_play(plan->seed + n);
        return;
    }
    find_single(n, &region, &bit);
    scene_play(region, bit);
}

static void worker_main(const struct plan *plan, uint32_t from)
{
    for (uint32_t n = from; n < plan->end; n += plan->step) {
        atomic_store(&flips_note->next, n);
        play(plan, n);
    }
    atomic_store(&flips_note->next, plan->end);
    _exit(0);
}

/* Returns the worker's exit status, or -1 if one of its calls does not return.
 * The worker's end of the pipe is closed when the worker ends. */
static int watch(pid_t pid, int pipe_fd)
{
    struct pollfd end = {pipe_fd, POLLIN, 0};
    struct wait_bound bound = wait_begin(HANG_MS);
    uint64_t calls = atomic_load(&flips_note->calls), now;
    int status = 0;
    bool hangs = false;

    while (!hangs && !poll(&end, 1, 200)) {
        now = atomic_load(&flips_note->calls);
        if (now != calls)
            bound = wait_begin(HANG_MS);
        else
            hangs = wait_over(&bound);
        calls = now;
    }
    if (hangs)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(pipe_fd);
    return hangs ? -1 : status;
}

static void tell(const struct plan *plan, uint32_t n, int status)
{
    unsigned region;
    size_t bit;
    char what[200];

    if (status == -1)
        snprintf(what, sizeof(what), "a call does not end");
    else if (WIFSIGNALED(status))
        snprintf(what, sizeof(what), "signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(what, sizeof(what), "%s",
                 flips_note->fault[0] ? flips_note->fault : "it failed");
    if (plan->seed) {
        printf("# shm_flips random %llu 1: %s; last flip: offset %llu, bit "
               "%d\n",
               (unsigned long long)(plan->seed + n), what,
               (unsigned long long)atomic_load(&flips_note->offset),
               atomic_load(&flips_note->bit));
        return;
    }
    find_single(n, &region, &bit);
    printf("# shm_flips one %u %zu: %s; %s, byte %zu, bit %zu (offset %llu)\n",
           region, bit, what, scene_region_name(region), bit / 8, bit % 8,
           (unsigned long long)atomic_load(&flips_note->offset));
}

/* Runs a worker that begins with trial *from; sets *from to the trial at which
 * the worker ended, and returns the worker's status. */
static int run_worker(const struct plan *plan, uint32_t *from)
{
    int fds[2], status;
    pid_t pid;

    flips_note->fault[0] = '\0';
    if (pipe(fds) || (pid = fork()) < 0) {
        perror("fork");
        exit(2);
    }
    if (!pid)
        worker_main(plan, *from);
    close(fds[1]);
    status = watch(pid, fds[0]);
    *from = atomic_load(&flips_note->next);
    return status;
}

/* A late call counts as a fault only if three runs of the same trial in a row
 * have one, because the machine may have stalled. */
static void run(const struct plan *plan)
{
    uint32_t from = plan->first, late_at = UINT32_MAX;
    int faults = 0, late = 0, status;

    while (from < plan->end && faults < FAULTS_MAX) {
        status = run_worker(plan, &from);
        if (!status)
            break;
        if (status != -1 && WIFEXITED(status) &&
            WEXITSTATUS(status) == FLIPS_LATE) {
            late = late_at == from ? late + 1 : 1;
            late_at = from;
            if (late < 3)
                continue;
        }
        tell(plan, from, status);
        faults++;
        from += plan->step;
    }
    cases++;
    failed += faults > 0;
    printf("%sok %d - %s: %u trials%s\n", faults ? "not " : "", cases,
           plan->name, (plan->end - plan->first + plan->step - 1) / plan->step,
           faults == FAULTS_MAX ? ", given up" : "");
    fflush(stdout);
}

static void run_one(unsigned region, uint32_t bit)
{
    struct plan plan = {scene_region_name(region), 0, 1, 0, 0};

    for (unsigned i = 0; i < region; i++)
        plan.first += (uint32_t)scene_region_len(i);
    plan.first += bit;
    plan.end = plan.first + 1;
    run(&plan);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    unsigned long a = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    unsigned long b = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    build();
    if (!strcmp(mode, "single") && a < b) {
        run(&(struct plan){"each bit", (uint32_t)a, (uint32_t)b, singles(), 0});
    } else if (!strcmp(mode, "one") && a < scene_regions() &&
               b < scene_region_len((unsigned)a)) {
        run_one((unsigned)a, (uint32_t)b);
    } else if (!strcmp(mode, "random")) {
        run(&(struct plan){"at random", 0, 1, b ? (uint32_t)b : ROUNDS,
                           a ? a : (uint64_t)wait_now() | 1});
    } else {
        fprintf(stderr, "usage: shm_flips single SHARD SHARDS | random [SEED "
                        "[ROUNDS]] | one REGION BIT\n");
        failed = 1;
    }
    canary_stop(&flips_canary);
    locks_place_remove(&place);
    printf("1..%d\n", cases);
    if (!strcmp(mode, "random"))
        tally_line_print(
            &(struct tally_line){.faults = (uint64_t)FLIPS * (b ? b : ROUNDS),
                                 .violations = (uint64_t)failed});
    return failed != 0;
}
