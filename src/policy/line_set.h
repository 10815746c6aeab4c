/*
 * The lines of a client to one name, where there may be several, and which of
 * them a verb is about. Pure, like the queues that it looks at.
 *
 * A read-write lock writes through its first line and reads through others,
 * each with a read hold that local readers share while it is young. A semaphore
 * has a line for each hold. A latch has few, whose waiters are let through
 * together. Lines are made when none is free, and kept for the next time.
 */
#ifndef HF_LINE_SET_H
#define HF_LINE_SET_H

#include "policy/local_queue.h"

/* Lists apart, so that no verb looks at lines that nobody uses. */
enum hf__place {
    HF__TAKEN,   /* held, waited for, or somebody has to release it */
    HF__LEAVING, /* it is being let go, and nobody wants it */
    HF__RESTING, /* fit for any new waiter: those that write, */
    HF__READING, /* and those that read */
    HF__PLACES,
};

struct hf__line_entry {
    struct hf__line_entry *next, *prev;
    struct hf__queue *queue;
    uint8_t place; /* HF__PLACES: in no list */
};

struct hf__line_set {
    struct hf__line_entry *at[HF__PLACES]; /* newest first */
    struct hf__line_entry *first;          /* the oldest; it writes */
    uint8_t kind;                          /* enum hf_kind */
};

/* Aborts unless each line is in the list that it says, and the first one is in
 * one. */
HF__VERIFIER(line_set)

void hf__line_set_init(struct hf__line_set *, enum hf_kind,
                       struct hf__line_entry *first);

/*
 * The line through which w is to be acquired: that of the owner's hold, one
 * that it can share, or one that is free; NULL: a new one has to be added. If
 * its queue is shared, w needs an entry. ELOST; ENOTSUP: the owner reads, and
 * wants to write.
 */
int hf__line_set_for(struct hf__line_set *, const struct hf__waiter *,
                     enum hf_mode, hf__time now, struct hf__line_entry **);

/* One for which w need not look at the others, because nobody is in their way:
 * all lines of a read-write lock rest. Or NULL. It is not taken yet. */
struct hf__line_entry *hf__line_set_quiet(const struct hf__line_set *,
                                          enum hf_mode);
void hf__line_set_take(struct hf__line_set *, struct hf__line_entry *);

/* One that rests, which is taken from now on; or NULL. */
struct hf__line_entry *hf__line_set_unused(struct hf__line_set *, enum hf_mode);
void hf__line_set_add(struct hf__line_set *,
                      struct hf__line_entry *); /* taken */

/* Somebody was granted what it waited for there: of all holds it is the newest
 * one, whoever asked first. */
void hf__line_set_granted(struct hf__line_set *, struct hf__line_entry *);

/* The line of this owner's newest hold, lost ones last; the first one if it
 * has none. */
struct hf__line_entry *hf__line_set_held(const struct hf__line_set *,
                                         uint64_t owner);

/* Puts a line where it belongs, by what its queue says. To be called whenever
 * nobody may use it any more: when it was released, and when it is let go. */
void hf__line_set_rest(struct hf__line_set *, struct hf__line_entry *);

/* Takes all but the first out; they stay linked by next. */
struct hf__line_entry *hf__line_set_all_but_first(struct hf__line_set *);

#endif
