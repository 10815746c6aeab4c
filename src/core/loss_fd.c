#include "core/loss_fd.h"

#include "base/thread_id.h"
#include "base/time.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/lock.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

#include <sys/timerfd.h>
#include <unistd.h>

/* The time to set a timer to if the loss has already happened: the timer then
 * fires at once. (HF__NEVER means that no hold concerns the handle, or that
 * none of these holds has an end.) */
#define ALREADY ((hf__time)1)

static void loss_fd_arm(hf_lock *lock, hf__time at)
{
    struct itimerspec spec = {0};

    /* A loss stays signalled until hf__loss_fd_clear() ends the signal. */
    if (lock->loss_signalled && at != ALREADY)
        return;
    lock->loss_signalled = at == ALREADY;
    if (at != HF__NEVER) {
        spec.it_value.tv_sec = at / 1000000000;
        spec.it_value.tv_nsec = at % 1000000000;
    }
    timerfd_settime(lock->loss_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Returns whether a hold of that owner concerns the handle. If the handle is
 * the owner, only its own holds do; otherwise the holds of all threads do. */
static bool loss_fd_is_about(const hf_lock *lock, uint64_t owner)
{
    return lock->owner ? owner == lock->owner : hf__owner_is_thread(owner);
}

/* Returns whether a reader that concerns the handle holds the lock or, if
 * `lost`, has lost its hold. Readers whose thread has exited count only if
 * `exited_too`. */
static bool loss_fd_has_reader(const struct hf__queue *g, const hf_lock *lock,
                               bool lost, bool exited_too)
{
    for (const struct hf__reader *r = g->readers; r; r = r->next)
        if (r->lost == lost && loss_fd_is_about(lock, r->owner) &&
            (exited_too || !hf__thread_gone(r->thread)))
            return true;
    return false;
}

static bool loss_fd_concerns(const struct hf__queue *g, const hf_lock *lock)
{
    return g->shared ? loss_fd_has_reader(g, lock, false, true)
                     : loss_fd_is_about(lock, g->owner);
}

/* Returns when the first hold that concerns the handle ends. */
static hf__time loss_fd_first_end(const hf_lock *lock)
{
    hf__time at = HF__NEVER;

    for (struct hf__line *n = hf__lines_newest(lock->line); n;
         n = hf__lines_after(n)) {
        const struct hf__queue *g = &n->queue;

        if (g->owner && g->lease.state == HF__HELD && !g->lease.drop &&
            g->lease.deadline < at && loss_fd_concerns(g, lock))
            at = g->lease.deadline;
    }
    return at;
}

/* Returns whether an owner that concerns the handle still has to release a lost
 * hold of this line. */
static bool loss_fd_to_be_released(const struct hf__line *n,
                                   const hf_lock *lock)
{
    const struct hf__queue *g = &n->queue;
    uint64_t gone =
        hf__thread_gone(n->owner_thread) ? n->owner_thread->number : 0;

    if (g->shared)
        return loss_fd_has_reader(g, lock, true, false);
    for (int i = 0; i < HF__LOST_MAX; i++)
        if (g->lost[i].count && g->lost[i].owner != gone &&
            loss_fd_is_about(lock, g->lost[i].owner))
            return true;
    return false;
}

static bool loss_fd_has_news(const hf_lock *lock)
{
    for (struct hf__line *n = hf__lines_newest(lock->line); n;
         n = hf__lines_after(n))
        if (loss_fd_to_be_released(n, lock))
            return true;
    return false;
}

/* Returns whether the loss of this line's hold, which was just found, must be
 * signalled to the handle. A loss that the handle, as the owner, has found by
 * its own release must not be signalled, because nothing is left to release. */
static bool loss_fd_was_about(const struct hf__line *n, const hf_lock *lock)
{
    if (n->queue.shared)
        return loss_fd_has_reader(&n->queue, lock, true, true);
    return lock->owner ? hf__queue_knows(&n->queue, lock->owner)
                       : n->owner_thread != NULL;
}

void hf__loss_fd_clear(hf_lock *lock)
{
    if (loss_fd_has_news(lock))
        return;
    lock->loss_signalled = false;
    if (lock->loss_fd >= 0)
        loss_fd_arm(lock, loss_fd_first_end(lock));
}

void hf__loss_fd_arm(struct hf__line *n, bool lost)
{
    hf_lock *lock = hf__line_first(n)->watchers;

    for (; lock; lock = lock->next_watcher)
        if (!lost)
            loss_fd_arm(lock, loss_fd_first_end(lock));
        else if (loss_fd_was_about(n, lock))
            loss_fd_arm(lock, ALREADY);
}

void hf__loss_fd_arm_of(struct hf__line *n, uint64_t owner)
{
    hf_lock *lock = hf__line_first(n)->watchers;

    for (; lock; lock = lock->next_watcher)
        if (loss_fd_is_about(lock, owner))
            loss_fd_arm(lock, loss_fd_first_end(lock));
}

void hf__loss_fd_moved(struct hf__line *n)
{
    hf_lock *lock = hf__line_first(n)->watchers;

    for (; lock; lock = lock->next_watcher)
        if (loss_fd_concerns(&n->queue, lock))
            loss_fd_arm(lock, loss_fd_first_end(lock));
}

bool hf__loss_fd_open(hf_lock *lock)
{
    struct hf__line *first = lock->line;

    lock->loss_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (lock->loss_fd < 0)
        return false;
    lock->next_watcher = first->watchers;
    first->watchers = lock;
    return true;
}

void hf__loss_fd_start(hf_lock *lock)
{
    loss_fd_arm(lock,
                loss_fd_has_news(lock) ? ALREADY : loss_fd_first_end(lock));
}

void hf__loss_fd_close(hf_lock *lock)
{
    hf_lock **p = &lock->line->watchers;

    if (lock->loss_fd < 0)
        return;
    while (*p != lock)
        p = &(*p)->next_watcher;
    *p = lock->next_watcher;
    close(lock->loss_fd);
}
