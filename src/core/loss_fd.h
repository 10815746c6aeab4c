/*
 * The descriptors that signal losses (hf_lock_fd). Each is a timerfd, set to
 * the end of the first hold that concerns its handle, and made readable at once
 * when such a hold is lost. line->mu is held.
 */
#ifndef HF_LOSS_FD_H
#define HF_LOSS_FD_H

#include "core/lock.h"

/* Creates the handle's descriptor; hf__loss_fd_start() must then set its timer.
 * Returns false if the kernel has no descriptor or no memory for it. */
bool hf__loss_fd_open(hf_lock *);
/* Sets the timer of a descriptor that was just created. */
void hf__loss_fd_start(hf_lock *);
/* Closes the descriptor of a handle that is about to be freed, if it has
 * one. */
void hf__loss_fd_close(hf_lock *);
/* Re-arms the descriptors of this name after any deadline has changed. If
 * `lost`, signals the loss of this line's hold instead, on the descriptors that
 * it concerns. */
void hf__loss_fd_arm(struct hf__line *, bool lost);
/* Re-arms the descriptors of this name that a hold of this owner concerns,
 * after the owner has acquired or released. All others are left as they are,
 * because there may be thousands of them, on as many lines. */
void hf__loss_fd_arm_of(struct hf__line *, uint64_t owner);
/* Re-arms the descriptors of this name that the hold of this line concerns,
 * after the deadline of the hold has changed. */
void hf__loss_fd_moved(struct hf__line *);
/* Must be called when an acquire through the handle begins, and when it has
 * been granted. The descriptor stops signalling a loss, unless a lost hold must
 * still be released. */
void hf__loss_fd_clear(hf_lock *);

/* Does what hf__loss_fd_clear() does, but makes no system call if nothing is
 * signalled. */
static inline void hf__loss_fd_heard(hf_lock *lock)
{
    if (__builtin_expect(lock->loss_signalled, 0))
        hf__loss_fd_clear(lock);
}

/* Must be called when a release through the handle has ended. After ELOST the
 * descriptor is cleared even if no loss is signalled: the release may have
 * found the loss before the timer has fired, and the timer would fire later. */
static inline void hf__loss_fd_released(hf_lock *lock, int result)
{
    if (__builtin_expect(lock->loss_signalled || result == HF_ELOST, 0))
        hf__loss_fd_clear(lock);
}

#endif
