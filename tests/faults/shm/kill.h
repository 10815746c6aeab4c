/*
 * Worker processes that acquire and release locks until they are killed. Each
 * of them writes what it does into a log in shared memory, which outlives the
 * process. kill.c kills the processes, reads the logs and judges.
 */
#ifndef SHM_KILL_H
#define SHM_KILL_H

#include "../../lib/history.h"
#include "../../lib/options.h"
#include "../../lib/sanitized.h"
#include "../../lib/shm_dir.h"
#include "helpers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* By the contract, a waiting client must be granted the lock within this time
 * after a holder or another waiter has been killed. Instrumented code gets more
 * time. */
enum { LIMIT_MS = SANITIZED ? 2000 : 100 };
enum { WORKERS = 8, PROBER = WORKERS, SEATS, NAMES = 4, LOG_ROOM = 1 << 18 };

/* The locks, by number. */
struct kill_lock {
    int kind, fairness;
    uint32_t size; /* the permits of a semaphore */
};
extern const struct kill_lock kill_locks[NAMES];

/* What the lock of the same number protects; deliberately not atomic. */
struct guarded {
    volatile uint64_t counter, token;
};

enum doing { IDLE, ACQUIRING, HOLDING };

/* A process. An event counts once `len` includes it. A write to the protected
 * counter and its log entry cannot be one step. Therefore `about_to` announces
 * the write, and after a kill the outcome of an announced write is unknown. */
struct worker {
    _Atomic pid_t pid;
    _Atomic int busy_with; /* number of the lock; if IDLE, number of the last
                              lock */
    _Atomic int doing;
    _Atomic uint32_t len;
    _Atomic uint32_t about_to; /* the value that `len` will have after the
                                  announced write */
    struct history_event log[LOG_ROOM];
};

struct shared {
    struct guarded guarded[NAMES];
    _Atomic uint64_t grants, given_up, errors;
    _Atomic int stop;
    struct worker worker[SEATS];
};

extern struct shared *shared;
extern struct locks_place place;

/* Runs a worker with this index in shared->worker and this process number in
 * the history. */
void worker_main(int seat, uint32_t process, uint64_t seed);
/* Acquires the locks whose numbers arrive from `in`, and writes to `out` when
 * each was granted. */
void prober_main(uint32_t process, int in, int out);

#endif
