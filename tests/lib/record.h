/*
 * A history of real threads and processes. Each owner writes its events into
 * its own part of a file that all processes map, so the events of a killed
 * process are not lost. The resource that the lock guards is in the file too:
 * it remembers the highest token, refuses lower ones, and records each use. The
 * process that created the file adds the deaths, collects all events and runs
 * the checkers.
 */
#ifndef TESTS_RECORD_H
#define TESTS_RECORD_H

#include "history.h"

#include <holdfast.h>

#define RECORD_OWNERS 32

struct record;

/* Maps the file, which is created if it does not exist. Returns NULL on
 * failure. */
struct record *record_map(const char *path);
void record_unmap(struct record *);

/* An owner that acquires a lock; only one thread at a time may write its
 * events. */
struct record_owner {
    struct record *record;
    hf_lock *lock;
    uint32_t owner, process;
    int64_t op_timeout_ms; /* time limit of a release or a try */
    enum hf_kind kind;     /* 0 means a mutex */
    uint32_t size;         /* permits of a semaphore */
    bool rough;            /* servers fail: accept HF_EBACKEND, HF_EUNKNOWN */
};

/*
 * Acquires the lock, reads the resource, writes it unless the hold is shared,
 * and releases. Returns 0 or the code of the verb that failed. Returns 0 too if
 * the lock was not granted in time, if the hold was lost, or if `rough` excuses
 * the failure.
 */
int record_round(const struct record_owner *, const hf_acquire_options *);
/* Runs a round whose wait, lease, mode and permits depend on `number`; some
 * writers downgrade before they release. */
int record_any_round(const struct record_owner *, unsigned number);
/* Runs record_any_round() until record_over() is called. */
int record_rounds(const struct record_owner *);
void record_over(struct record *);
/* Returns how often the owner has been granted the lock. */
uint64_t record_grants(const struct record *, uint32_t owner);

/* The following three functions are called by the process that kills, stops or
 * continues another process; `before` is a time when the other process was
 * still running. No owner of a killed process may write afterwards. */
void record_killed(struct record *, struct history *, uint32_t process,
                   int64_t before);
void record_stopped(struct history *, uint32_t process, int64_t before);
void record_continued(struct history *, uint32_t process);
/* Collects all events, adds HISTORY_END, and sorts them. Must be called after
 * all other processes have ended. */
void record_gather(struct record *, struct history *);
/* Returns the number of writes that the resource accepted. */
uint64_t record_writes(const struct record *);

#endif
