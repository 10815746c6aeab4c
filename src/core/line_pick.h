/*
 * Chooses the line of a name that a verb uses. An acquire uses the line of the
 * owner's hold, a line whose hold it can share, or a free line, which is
 * created if necessary. All other verbs use the line of the owner's hold.
 * line->mu is held.
 */
#ifndef HF_LINE_PICK_H
#define HF_LINE_PICK_H

#include "core/lock.h"

/* Finds the line through which w acquires. Returns 0, or an error code with a
 * message. */
int hf__pick_for(const hf_lock *, struct hf__waiter *, enum hf_mode,
                 hf__time now, struct hf__line **, hf_error *);
/* Returns a line on which w may try the short way (hf__queue_quiet), with an
 * entry for w if w reads. Returns NULL if there is no such line. */
struct hf__line *hf__pick_quiet(struct hf__line *first, struct hf__waiter *,
                                enum hf_mode);
/* Must be called after hf__pick_quiet(). `had` tells whether w was granted. If
 * it was, the line is marked as used; otherwise the reader entry of w is taken
 * back. */
void hf__pick_went(struct hf__line *, struct hf__waiter *, bool had);
/* Returns the line of this owner's newest hold (a lost hold counts only if
 * there is no other), or the first line if the owner has none. */
struct hf__line *hf__pick_held(struct hf__line *first, uint64_t owner);
/* Finds the line of the caller's newest hold. Returns 0 if that hold is good,
 * otherwise an error code with a message. */
int hf__pick_check(const hf_lock *, struct hf__line **, hf_error *);
/* Moves the owner's write hold to a line for reading, and sets *into to that
 * line. Returns 0, or an error code with a message. */
int hf__pick_downgrade(struct hf__line *first, struct hf__thread *,
                       hf__time now, struct hf__line **into, hf_error *);

#endif
