/*
 * How threads sleep and are woken. A waiter's thread sleeps in futex_waitv(2)
 * on several words at once: the bell of its cell, the liveness words of the
 * clients that it waits for (mostly one), and the private word by which its own
 * process wakes it. Where that call is missing (before Linux 5.16) or
 * forbidden, the thread sleeps on the bell and checks the other words every 50
 * ms.
 *
 * No wake-up is missed: the bell was read before the lock's word, and each
 * liveness word was read when its client was seen alive. If one of them has
 * changed since, the kernel does not let the thread sleep.
 *
 * Asynchronous waits have no thread. The helper thread sleeps for them, on its
 * doorbell (which notify.c also rings) and on all liveness words that these
 * waits watch. While there are such waits but no futex_waitv, it sleeps for at
 * most 50 ms at a time.
 *
 * Deadlines count by CLOCK_BOOTTIME, which continues while the machine is
 * suspended. A futex has no such clock. No sleep is therefore longer than a few
 * seconds, so that a deadline that passes during a suspend is noticed when the
 * sleep ends.
 */
#include "park.h"

#include "file.h"
#include "lock_state.h"
#include "notify.h"
#include "queue.h"
#include "wait.h"
#include "wakeup.h"
#include "watch.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* the longest sleep of the helper thread, which limits the delay after a
 * suspend */
#define NAP_NS (5000 * HF__MS)
/* how many words the helper thread watches at most in one sleep */
#define WATCHED_MAX 100u

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* struct futex_waitv, which older headers do not have. */
struct wait_on {
    uint64_t value;
    uint64_t address;
    uint32_t flags; /* 2: 32 bits; 128: private */
    uint32_t reserved;
};

static struct timespec park_monotonic(hf__time from_now)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += from_now / (1000 * HF__MS);
    at.tv_nsec += from_now % (1000 * HF__MS);
    if (at.tv_nsec >= 1000 * HF__MS) {
        at.tv_nsec -= 1000 * HF__MS;
        at.tv_sec++;
    }
    return at;
}

static void park_wait_for(struct wait_on *on, const void *word, uint32_t value,
                          bool is_private)
{
    *on = (struct wait_on){value, (uint64_t)(uintptr_t)word,
                           is_private ? 2 | 128 : 2, 0};
}

/* Sleeps on all words in `on`. Returns false if the kernel cannot do so
 * (ENOMEM, or no futex_waitv). A seccomp filter may answer in place of the
 * kernel, with any error. */
static bool park_sleep_on(struct shm *s, struct wait_on *on, unsigned len,
                          hf__time from_now)
{
    struct timespec until = park_monotonic(from_now);

    if (atomic_load_explicit(&s->no_waitv, memory_order_relaxed))
        return false;
    if (syscall(SYS_futex_waitv, on, len, 0, &until, CLOCK_MONOTONIC) >= 0 ||
        errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR)
        return true;
    if (errno != ENOMEM)
        atomic_store(&s->no_waitv, true);
    return false;
}

static void helper_park(struct shm *s, uint32_t *word, uint32_t expect,
                        hf__time until)
{
    struct shm_slot *slots = s->file->slot;
    struct wait_on on[2 + WATCHED_MAX];
    uint64_t seen[SHM_MAP_LEN] = {0};
    bool is_relied_on = !atomic_load(&s->no_waitv) || s->listens;
    unsigned len = 2;
    hf__time left;

    /* A client that only holds locks, and waits for none, checks the file
     * nowhere else. */
    if (!shm_is_lost(s))
        hf__shm_file_still_there(s);
    if (s->early_marks)
        until = hf__min_time(until, s->core->now() + SHM_POLL_NS);
    park_wait_for(&on[0], word, expect, true);
    park_wait_for(&on[1], &slots[s->me & SHM_SLOT_MASK].doorbell,
                  s->doorbell_seen, false);
    pthread_mutex_lock(&s->async_mutex);
    for (struct shm_wait *w = s->async; w; w = w->next) {
        until = hf__min_time(until, atomic_load(&w->watch.until));
        for (unsigned i = 0; i < SHM_WATCHED; i++) {
            uint32_t slot = atomic_load(&w->watch.slot[i]);

            if (!slot || (seen[slot / 64] >> slot % 64 & 1))
                continue;
            seen[slot / 64] |= 1ULL << slot % 64;
            if (len < 2 + WATCHED_MAX)
                park_wait_for(&on[len++], &slots[slot].alive,
                              atomic_load(&w->watch.word[i]), false);
            else
                until = hf__min_time(until, s->core->now() + SHM_POLL_NS);
        }
    }
    left = hf__min_time(until - s->core->now(), NAP_NS);
    is_relied_on = is_relied_on || s->async;
    pthread_mutex_unlock(&s->async_mutex);
    if (left <= 0 || park_sleep_on(s, on, len, left))
        return;
    /* While it sleeps on `word` only, the helper thread does not notice its
     * doorbell. Listeners and asynchronous waits rely on the doorbell, as does
     * an asynchronous wait that begins before park_sleep_on() sets no_waitv. If
     * there may be any of these, the sleep is short. */
    hf__shm_futex_wait(word, FUTEX_WAIT_PRIVATE, expect,
                       is_relied_on ? hf__min_time(left, SHM_POLL_NS) : left);
}

void hf__shm_park(void *self, struct hf__remote *remote, uint32_t *word,
                  uint32_t expect, hf__time until)
{
    struct shm *s = self;
    struct shm_lock *l = remote ? remote->impl : NULL;
    struct shm_wait *w = l ? atomic_load(&l->wait) : NULL;
    unsigned cell = w ? atomic_load(&w->cell) : SHM_NO_CELL;
    struct wait_on on[2 + SHM_WATCHED];
    unsigned len = 2;
    uint32_t slot, bell;
    hf__time left;

    if (!l) {
        helper_park(s, word, expect, until);
        return;
    }
    if (cell == SHM_NO_CELL)
        return;
    bell = atomic_load(&w->watch.bell);
    if (atomic_load(&w->cell) != cell)
        return; /* the wait has another cell by now, with another bell */
    park_wait_for(&on[0], &s->file->cell[cell].bell, bell, false);
    park_wait_for(&on[1], word, expect, true);
    for (unsigned i = 0; i < SHM_WATCHED; i++)
        if ((slot = atomic_load(&w->watch.slot[i])))
            park_wait_for(&on[len++], &s->file->slot[slot].alive,
                          atomic_load(&w->watch.word[i]), false);
    left = hf__min_time(until, atomic_load(&w->watch.until)) - s->core->now();
    if (left > 0 && !park_sleep_on(s, on, len, left) &&
        __atomic_load_n(word, __ATOMIC_ACQUIRE) == expect)
        hf__shm_futex_wait(&s->file->cell[cell].bell, FUTEX_WAIT, bell,
                           hf__min_time(left, SHM_POLL_NS));
}

static bool park_is_due(struct shm *s, struct shm_wait *w, hf__time now)
{
    unsigned cell = atomic_load(&w->cell);

    if (cell == SHM_NO_CELL)
        return false;
    if (atomic_load(&s->file->cell[cell].bell) != atomic_load(&w->watch.bell))
        return true;
    if (now >= atomic_load(&w->watch.until))
        return true;
    for (unsigned i = 0; i < SHM_WATCHED; i++)
        if (hf__shm_watch_died(s, w, i))
            return true;
    return false;
}

void hf__shm_advance(void *self, hf__time now)
{
    struct shm *s = self;

    s->doorbell_seen =
        atomic_load(&s->file->slot[s->me & SHM_SLOT_MASK].doorbell);
    pthread_mutex_lock(&s->async_mutex);
    for (struct shm_wait *w = s->async; w; w = w->next)
        if (!w->rung && park_is_due(s, w, now)) {
            w->rung = true;
            s->core->bell(s->client, w->remote);
        }
    pthread_mutex_unlock(&s->async_mutex);
    hf__shm_notify_poll(s);
}
