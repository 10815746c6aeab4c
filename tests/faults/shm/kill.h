/*
 * Processes that lock, to be killed; and what they tell of it: each writes
 * what it does into a log in shared memory, which outlives it. kill.c
 * kills, reads the logs and judges.
 */
#ifndef SHM_KILL_H
#define SHM_KILL_H

#include "../../lib/history.h"
#include "../../lib/options.h"
#include "../../lib/sanitized.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The bound of the contract; instrumented code is not held to it. */
enum { LIMIT_MS = SANITIZED ? 2000 : 100 };
enum { WORKERS = 8, PROBER = WORKERS, SEATS, NAMES = 4, LOG_ROOM = 1 << 18 };

/* The locks, by number. */
struct kill_lock {
    int kind, fairness;
    uint32_t size; /* of a semaphore */
};
extern const struct kill_lock kill_locks[NAMES];

/* What the lock of that number guards; plain on purpose. */
struct guarded {
    volatile uint64_t counter, token;
};

enum doing { IDLE, ACQUIRING, HOLDING };

/* A process. Its last event counts once `len` says so. A write to the
 * guarded counter cannot be done and logged in one step: `about_to` announces
 * it, and after a kill the outcome of an announced write is unknown. */
struct worker {
    _Atomic pid_t pid;
    _Atomic int busy_with; /* name; the last one while IDLE */
    _Atomic int doing;
    _Atomic uint32_t len;
    _Atomic uint32_t about_to; /* len, as it will be after the write */
    struct history_event log[LOG_ROOM];
};

struct shared {
    struct guarded guarded[NAMES];
    struct worker worker[SEATS];
    _Atomic uint64_t grants, given_up, errors;
    _Atomic int stop;
};

extern struct shared *shared;
extern char shm_url[80];

void nap_us(long us);
uint32_t chance(uint64_t *seed);

/* Each in a process of its own, which has that number in the history. */
void worker_main(int seat, uint32_t process, uint64_t seed);
/* Takes the names that are written to it, and answers when it had one. */
void prober_main(uint32_t process, int in, int out);

#endif
