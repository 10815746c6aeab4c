/*
 * A history of real threads and processes: each owner writes what it does into
 * a part of its own of a file that all map, so that what a killed process had
 * written is there; and the resource that the lock guards, which remembers the
 * highest token and refuses lower ones, writes there too. Whoever made the file
 * adds the deaths, gathers all of it and has it checked.
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
 * Takes the lock, reads the resource, writes it if nobody else has the lock,
 * lets go. Not granted in time or lost is a round like another: 0; else what
 * the verb said.
 */
int record_round(const struct record_owner *, const hf_acquire_options *);
/* The same with waits, leases, modes and permits of all sorts, chosen by
 * number; of those who write, some go on to read. */
int record_any_round(const struct record_owner *, unsigned number);
/* Any rounds until somebody says that it is over. */
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
/* After everybody has ended: all that was written, in order, and the end. */
void record_gather(struct record *, struct history *);
/* Writes that the resource accepted. */
uint64_t record_writes(const struct record *);

#endif
