/*
 * A process that only sleeps for short intervals. If it wakes more than 30 ms
 * late, not counting the time for which it waited for a processor, it adds the
 * delay to a total: the time for which the machine was stalled, which no
 * counter of the kernel shows.
 */
#ifndef CANARY_H
#define CANARY_H

#include "cpu_wait.h"
#include "wait.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct canary {
    pid_t pid;
    struct canary_notes {
        _Atomic int64_t stood; /* total of all stalls, in ns */
        _Atomic uint64_t naps;
    } * notes;
};

static inline void canary_main(struct canary_notes *notes)
{
    enum { NAP_MS = 5, LATE_MS = 30 };
    int64_t then = wait_now(), waited = cpu_wait_of_thread();

    for (;;) {
        int64_t now, waits, late;

        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
        now = wait_now();
        waits = cpu_wait_of_thread();
        late = now - then - NAP_MS * 1000000 - (waits - waited);
        then = now;
        waited = waits;
        if (late > LATE_MS * 1000000)
            atomic_fetch_add(&notes->stood, late);
        atomic_fetch_add(&notes->naps, 1);
    }
}

/* Starts the canary's process, which ends with the calling thread at the
 * latest. Returns false, with errno set, if the process cannot be started. */
static inline bool canary_start(struct canary *c)
{
    c->notes = mmap(NULL, sizeof(*c->notes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->notes == MAP_FAILED)
        return false;
    c->pid = fork();
    if (!c->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        canary_main(c->notes);
    }
    return c->pid > 0;
}

static inline void canary_stop(struct canary *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    munmap(c->notes, sizeof(*c->notes));
}

/* Returns how long the machine has stalled so far, in ns. The latest stall
 * might not be recorded yet. */
static inline int64_t canary_stood(const struct canary *c)
{
    return atomic_load(&c->notes->stood);
}

/* Returns how long the machine has stalled so far, in ns. Waits first until two
 * more naps have ended, so that a stall that is still going on is included. */
static inline int64_t canary_stood_by_now(const struct canary *c)
{
    uint64_t naps = atomic_load(&c->notes->naps);

    WAIT_FOR(atomic_load(&c->notes->naps) > naps + 1);
    return canary_stood(c);
}

#endif
