/*
 * The lines of a client under one name that may have several, and which of them
 * a verb uses. Pure, like the queues that it looks at.
 *
 * A read-write lock writes through its first line and reads through others.
 * Each of these has a read hold that local readers share while it is young. A
 * semaphore has a line for each hold. A latch has a few lines, and all waiters
 * of a line pass together. A line is created when none is free, and is kept for
 * later.
 */
#ifndef HF_LINE_SET_H
#define HF_LINE_SET_H

#include "policy/local_queue.h"

/* The states of a line. Each has a list, so that no verb looks at unused
 * lines. */
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
    uint8_t place; /* enum hf__place; HF__PLACES: the line is in no list */
};

struct hf__line_set {
    struct hf__line_entry *at[HF__PLACES]; /* newest first */
    struct hf__line_entry *first;          /* the oldest line; writers use it */
    uint8_t kind;                          /* enum hf_kind */
};

/* Aborts unless each line is in the list that its place says, and the first
 * line is in one. */
HF__VERIFIER(line_set)

void hf__line_set_init(struct hf__line_set *, enum hf_kind,
                       struct hf__line_entry *first);

/*
 * Finds the line through which w acquires: that of the owner's hold, one that w
 * can share, or a free one; NULL if the caller has to add one. If the line's
 * queue is shared, w needs a struct hf__reader. Returns 0; ELOST; ENOTSUP: the
 * owner reads and wants to write.
 */
int hf__line_set_for(struct hf__line_set *, const struct hf__waiter *,
                     enum hf_mode, hf__time now, struct hf__line_entry **);

/* Returns a resting line that can be used without a look at the others, because
 * they cannot be in its way (the lines of a read-write lock all rest); or NULL.
 * The line is not taken yet. */
struct hf__line_entry *hf__line_set_quiet(const struct hf__line_set *,
                                          enum hf_mode);
void hf__line_set_take(struct hf__line_set *, struct hf__line_entry *);

/* Takes a resting line and returns it; NULL if there is none. */
struct hf__line_entry *hf__line_set_unused(struct hf__line_set *, enum hf_mode);
/* Adds a new line, which counts as taken. */
void hf__line_set_add(struct hf__line_set *, struct hf__line_entry *);

/* Makes the line's hold the newest one, because a waiter of that line was
 * granted. */
void hf__line_set_granted(struct hf__line_set *, struct hf__line_entry *);

/* Returns the line of this owner's newest hold; a line with a lost hold only if
 * there is no other; the first line if the owner has none. */
struct hf__line_entry *hf__line_set_held(const struct hf__line_set *,
                                         uint64_t owner);

/* Moves a line to the list that its queue calls for. Must be called whenever a
 * line may have become free: after a release, and after it was let go. */
void hf__line_set_rest(struct hf__line_set *, struct hf__line_entry *);

/* Takes all lines but the first out of their lists; they stay linked by
 * next. */
struct hf__line_entry *hf__line_set_all_but_first(struct hf__line_set *);

#endif
