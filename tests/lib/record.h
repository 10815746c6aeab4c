/*
 * A history of real threads and processes. Each owner writes what it does into
 * its own part of a file that all map, so what a killed process had written is
 * there. The resource that the lock guards remembers the highest token and
 * refuses lower ones, and writes there too. The process that made the file adds
 * the deaths, gathers all events and has them checked.
 */
#ifndef TESTS_RECORD_H
#define TESTS_RECORD_H

#include "history.h"

#include <holdfast.h>

#define RECORD_OWNERS 32

struct record;

/* Makes the file if there is none. NULL on failure. */
struct record *record_map(const char *path);
void record_unmap(struct record *);

/* One who acquires; one thread at a time writes for an owner. */
struct record_owner {
    struct record *record;
    hf_lock *lock;
    uint32_t owner, process;
    int64_t op_timeout_ms; /* a release or a try is back by then */
    enum hf_kind kind;     /* 0: a mutex */
    uint32_t size;         /* of a semaphore */
    bool rough; /* servers fail: a verb that does, too, is a round like another
                 */
};

/*
 * Acquires the lock, reads the resource, writes it if no other holder is
 * inside, and releases. A round that is not granted in time or loses its hold
 * returns 0 too; else the code of the verb.
 */
int record_round(const struct record_owner *, const hf_acquire_options *);
/* The same with waits, leases, modes and permits of all sorts, chosen by
 * number; of those who write, some go on to read. */
int record_any_round(const struct record_owner *, unsigned number);
/* Any rounds until record_over() is called. */
int record_rounds(const struct record_owner *);
void record_over(struct record *);
/* How often the owner has been granted the lock. */
uint64_t record_grants(const struct record *, uint32_t owner);

/* Of the one who kills and stops: that process, from a moment at which it was
 * well. All owners of a killed one write no more. */
void record_killed(struct record *, struct history *, uint32_t process,
                   int64_t before);
void record_stopped(struct history *, uint32_t process, int64_t before);
void record_continued(struct history *, uint32_t process);
/* After all have ended: all that was written, in order, and the end. */
void record_gather(struct record *, struct history *);
/* Writes that the resource accepted. */
uint64_t record_writes(const struct record *);

#endif
