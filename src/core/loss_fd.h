/*
 * The descriptors that signal losses (hf_lock_fd). Each is a timerfd, set to
 * the end of the first hold that concerns its handle, and made readable at once
 * when such a hold is lost. line->mu is held.
 */
#ifndef HF_LOSS_FD_H
#define HF_LOSS_FD_H

#include "core/lock.h"

/* Makes the handle's descriptor; hf__loss_fd_start() then sets its timer.
 * Returns false if the process has no more descriptors. */
bool hf__loss_fd_open(hf_lock *);
void hf__loss_fd_start(hf_lock *);
void hf__loss_fd_close(hf_lock *); /* the handle is about to be freed */
/* Re-arms the descriptors of this name: after a loss on this line (lost), or
 * after any deadline has changed. */
void hf__loss_fd_arm(struct hf__line *, bool lost);
/* Re-arm only some descriptors of the name, because there may be thousands, on
 * as many lines. hf__loss_fd_arm_of(): those that one owner concerns, after it
 * has acquired or released. hf__loss_fd_moved(): those that this line's hold
 * concerns, after its deadline has changed. */
void hf__loss_fd_arm_of(struct hf__line *, uint64_t owner);
void hf__loss_fd_moved(struct hf__line *);
/* Must be called when a verb was called through the handle: the descriptor no
 * longer signals the loss if no lost hold is left to release. */
void hf__loss_fd_clear(hf_lock *);

/* hf__loss_fd_clear(), without a call if nothing is signalled. */
static inline void hf__loss_fd_heard(hf_lock *lock)
{
    if (__builtin_expect(lock->loss_signalled, 0))
        hf__loss_fd_clear(lock);
}

/* After ELOST, even if no loss is signalled: the release may have found the
 * loss first, and the timer would still fire by itself. */
static inline void hf__loss_fd_released(hf_lock *lock, int result)
{
    if (__builtin_expect(lock->loss_signalled || result == HF_ELOST, 0))
        hf__loss_fd_clear(lock);
}

#endif
