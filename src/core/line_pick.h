/*
 * Which line of a name a verb is about: for an acquire the line of the owner's
 * hold, one that it can share, or one that is free (made if need be); for all
 * others the line of the owner's hold. line->mu is held.
 */
#ifndef HF_LINE_PICK_H
#define HF_LINE_PICK_H

#include "core/lock.h"

/* The line through which w is to be acquired: that of the owner's hold, one
 * that it can share, or one that is free. */
int hf__pick_for(const hf_lock *, struct hf__waiter *, enum hf_mode,
                 hf__time now, struct hf__line **, hf_error *);
/* One through which it can be had the short way, see hf__queue_quiet(), with an
 * entry for w if it reads; or NULL. */
struct hf__line *hf__pick_quiet(struct hf__line *first, struct hf__waiter *,
                                enum hf_mode);
/* It was had: the line is in use. Or not: then the entry is taken back. */
void hf__pick_went(struct hf__line *, struct hf__waiter *, bool had);
/* The line of this owner's newest hold, lost ones last; the first one if it
 * has none. */
struct hf__line *hf__pick_held(struct hf__line *first, uint64_t owner);
/* That of the caller, if it is held now; else why not. */
int hf__pick_check(const hf_lock *, struct hf__line **, hf_error *);
/* The owner's write hold goes to a line for reading. */
int hf__pick_downgrade(struct hf__line *first, struct hf__thread *,
                       hf__time now, struct hf__line **into, hf_error *);

#endif
