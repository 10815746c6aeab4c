/*
 * The lines of a client under a name that may have several lines, and the
 * choice of the line that a verb uses. Pure, like the queues of the lines.
 *
 * A read-write lock writes through its first line and reads through the others.
 * Each of the others has at most one read hold, which further local readers may
 * join while it is young (HF__JOIN). A semaphore has a line for each hold. A
 * latch has a few lines, and all waiters of a line pass together. A line is
 * created when none is free, and is kept for later.
 */
#ifndef HF_LINE_SET_H
#define HF_LINE_SET_H

#include "policy/local_queue.h"

/* The states of a line. There is a list of the lines in each state, so that no
 * verb looks at unused lines. */
enum hf__place {
    HF__TAKEN,   /* held, waited for, or lost and not released yet */
    HF__LEAVING, /* its hold is being let go, and no owner wants it */
    HF__RESTING, /* free for any new writer (or semaphore holder or latch
                    waiter) */
    HF__READING, /* free for any new reader */
    HF__PLACES,
};

struct hf__line_entry {
    struct hf__line_entry *next, *prev;
    struct hf__queue *queue;
    uint8_t place; /* enum hf__place, or HF__PLACES if the line is in no list */
};

struct hf__line_set {
    struct hf__line_entry *at[HF__PLACES]; /* newest first */
    struct hf__line_entry *first;          /* the oldest line; writers use it */
    uint8_t kind;                          /* enum hf_kind */
};

/* Aborts unless each line is in the list of its `place`, and the first line is
 * in one of the lists. */
HF__VERIFIER(line_set)

void hf__line_set_init(struct hf__line_set *, enum hf_kind,
                       struct hf__line_entry *first);

/*
 * Finds the line through which w acquires: the line of the owner's hold, a line
 * whose hold w can share, or a free line. If there is no such line, the entry
 * is NULL, and the caller must add a line. If the line's queue is shared, w
 * needs a struct hf__reader. Returns 0, ELOST, or ENOTSUP if the owner reads
 * and wants to write.
 */
int hf__line_set_for(struct hf__line_set *, const struct hf__waiter *,
                     enum hf_mode, hf__time now, struct hf__line_entry **);

/* Returns a resting line that can be used without a look at the other lines: a
 * line of a semaphore, or of a read-write lock if all its lines rest. Returns
 * NULL if there is no such line. The line is not taken yet. */
struct hf__line_entry *hf__line_set_quiet(const struct hf__line_set *,
                                          enum hf_mode);
void hf__line_set_take(struct hf__line_set *, struct hf__line_entry *);

/* Takes a resting line and returns it, or returns NULL if there is none. */
struct hf__line_entry *hf__line_set_unused(struct hf__line_set *, enum hf_mode);
/* Adds a new line, which counts as taken. */
void hf__line_set_add(struct hf__line_set *, struct hf__line_entry *);

/* Makes the line's hold the newest one, because a waiter of that line was
 * granted. */
void hf__line_set_granted(struct hf__line_set *, struct hf__line_entry *);

/* Returns the line of this owner's newest hold; a lost hold counts only if the
 * owner has no other. Returns the first line if the owner has no hold. */
struct hf__line_entry *hf__line_set_held(const struct hf__line_set *,
                                         uint64_t owner);

/* Moves a line to the list that the state of its queue calls for. Must be
 * called whenever the line may have become free: after a release, and after a
 * let_go. */
void hf__line_set_rest(struct hf__line_set *, struct hf__line_entry *);

/* Takes all lines but the first out of their lists; the lines stay linked by
 * `next`. */
struct hf__line_entry *hf__line_set_all_but_first(struct hf__line_set *);

#endif
