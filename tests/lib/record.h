/*
 * A history of real threads and processes. Each owner writes what it does into
 * its own part of a file that all of them map, so the events of a killed
 * process are not lost. The resource that the lock guards remembers the highest
 * token and refuses lower ones, and writes there too. The process that made the
 * file adds the deaths, gathers all events and has them checked.
 */
#ifndef TESTS_RECORD_H
#define TESTS_RECORD_H

#include "history.h"

#include <holdfast.h>

#define RECORD_OWNERS 32

struct record;

/* Makes the file if it does not exist. NULL on failure. */
struct record *record_map(const char *path);
void record_unmap(struct record *);

/* An owner that acquires; only one thread at a time writes for it. */
struct record_owner {
    struct record *record;
    hf_lock *lock;
    uint32_t owner, process;
    int64_t op_timeout_ms; /* limit of a release or a try */
    enum hf_kind kind;     /* 0: a mutex */
    uint32_t size;         /* permits of a semaphore */
    bool rough;            /* servers fail, so a verb may too */
};

/*
 * Acquires the lock, reads the resource, writes it unless the hold is shared,
 * and releases. Returns 0 also if the lock was not granted in time or the hold
 * was lost; otherwise the code of the verb that failed.
 */
int record_round(const struct record_owner *, const hf_acquire_options *);
/* A round with waits, leases, modes and permits that depend on `number`; some
 * writers downgrade and continue as readers. */
int record_any_round(const struct record_owner *, unsigned number);
/* Runs record_any_round() until record_over() is called. */
int record_rounds(const struct record_owner *);
void record_over(struct record *);
/* How often the owner has been granted the lock. */
uint64_t record_grants(const struct record *, uint32_t owner);

/* Called by the process that kills, stops and continues others; `before` is a
 * time when that other process was running. No owner of a killed process may
 * write afterwards. */
void record_killed(struct record *, struct history *, uint32_t process,
                   int64_t before);
void record_stopped(struct history *, uint32_t process, int64_t before);
void record_continued(struct history *, uint32_t process);
/* After all processes have ended: collects all events, sorts them, and adds
 * HISTORY_END. */
void record_gather(struct record *, struct history *);
/* The number of writes that the resource accepted. */
uint64_t record_writes(const struct record *);

#endif
