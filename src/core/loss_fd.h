/*
 * The descriptors that tell of loss (hf_lock_fd): timers that are set to the
 * end of the first hold that concerns their handle, and at once when it is
 * lost. line->mu is held.
 */
#ifndef HF_LOSS_FD_H
#define HF_LOSS_FD_H

#include "core/lock.h"

/* Makes the handle's descriptor, which is not set yet: hf__loss_fd_start()
 * does that. False: no descriptor could be had. */
bool hf__loss_fd_open(hf_lock *);
void hf__loss_fd_start(hf_lock *);
void hf__loss_fd_close(hf_lock *); /* it is about to be freed */
/* Sets the descriptors that tell of loss: the hold of this line has been lost,
 * or some have another end now. */
void hf__loss_fd_arm(struct hf__line *, bool lost);
/* The same, where it can only concern some: those of one owner who came or
 * left, or those who have the hold of this line, which has another end now.
 * (There may be thousands, on as many lines.) */
void hf__loss_fd_arm_of(struct hf__line *, uint64_t owner);
void hf__loss_fd_moved(struct hf__line *);
/* Something was done through the handle: a loss that nobody has to release any
 * more is told no more. */
void hf__loss_fd_clear(hf_lock *);

static inline void hf__loss_fd_heard(hf_lock *lock)
{
    if (__builtin_expect(lock->loss_signalled, 0))
        hf__loss_fd_clear(lock);
}

/* The release may have found the loss before anybody was told of it; but the
 * descriptor, which is a timer, tells by itself. */
static inline void hf__loss_fd_released(hf_lock *lock, int result)
{
    if (__builtin_expect(lock->loss_signalled || result == HF_ELOST, 0))
        hf__loss_fd_clear(lock);
}

#endif
