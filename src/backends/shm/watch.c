/*
 * Chooses the clients whose death must wake a waiter.
 *
 * The kernel wakes only one of the threads that sleep on the word of a client
 * that dies. A client that notices a death therefore wakes the others before it
 * does anything else. But that client may be stopped or killed before it does
 * so. For this reason, waiters that sleep on the same word also check it
 * occasionally. The more of them there are, the less often each checks, because
 * one check is enough.
 */
#include "watch.h"

#include "liveness.h"
#include "retry.h"
#include "wait.h"
#include "wakeup.h"

#include <limits.h>

/* the longest sleep of a waiter between two checks, in case a wake-up was
 * lost */
#define RECHECK_NS (2000 * HF__MS)

void hf__shm_wake_watchers(struct shm *s, uint32_t owner)
{
    SHM_POINT();
    hf__shm_futex_wake(&s->file->slot[owner & SHM_SLOT_MASK].alive, INT_MAX);
    SHM_POINT();
}

bool hf__shm_is_over(struct shm *s, uint32_t owner, hf__time lease_end,
                     uint32_t *dead)
{
    if (!hf__shm_alive(s, owner)) {
        hf__shm_wake_watchers(s, owner);
        if (hf__shm_gone(s, owner)) {
            *dead = owner;
            return true;
        }
    }
    return lease_end != HF__NEVER && lease_end <= s->core->now();
}

/* Returns when to check again a client that is marked as dead but whose process
 * is not gone yet: within a few ms at first, and less often if this state lasts
 * (for example, while a core is being written). */
static hf__time watch_soon(struct shm *s, struct shm_wait *w)
{
    hf__time nap = w->dying < 5 ? HF__MS / 10 << w->dying : 3 * HF__MS;

    if (w->dying < UINT8_MAX)
        w->dying++;
    else
        nap = SHM_POLL_NS;
    return s->core->now() + nap;
}

static void count_watcher(struct shm *s, unsigned slot, bool comes)
{
    shm_u32 *watchers = &s->file->slot[slot % SHM_SLOTS].watchers;
    uint32_t n = atomic_load(watchers);
    struct shm_retry retry = {0};

    while ((n || comes) &&
           !atomic_compare_exchange_weak(watchers, &n, comes ? n + 1 : n - 1) &&
           hf__shm_retry(s, &retry))
        ;
}

void hf__shm_unwatch(struct shm *s, struct shm_cell *c, unsigned from)
{
    for (unsigned i = from; i < SHM_WATCHED; i++) {
        unsigned slot =
            atomic_load_explicit(&c->watching[i], memory_order_relaxed);

        if (slot && (slot = atomic_exchange(&c->watching[i], 0)))
            count_watcher(s, slot, false);
    }
}

/* Makes the cell watch the slots of w. Returns how long to sleep at most; this
 * depends on how many other cells watch the same slots. */
static hf__time watch_patience(struct shm *s, struct shm_wait *w)
{
    struct shm_cell *c = &s->file->cell[atomic_load(&w->cell)];
    hf__time nap = RECHECK_NS, crowd;
    unsigned i, slot;

    for (i = 0; i < SHM_WATCHED; i++) {
        slot = atomic_load(&w->watch.slot[i]);
        if (!slot)
            break;
        if (atomic_load(&c->watching[i]) != slot) {
            hf__shm_unwatch(s, c, i);
            atomic_store(&c->watching[i], (uint16_t)slot);
            count_watcher(s, slot, true);
        }
        crowd = atomic_load(&s->file->slot[slot].watchers);
        if (crowd > 1)
            nap = hf__min_time(nap, crowd * SHM_POLL_NS / 2);
    }
    hf__shm_unwatch(s, c, i);
    return nap;
}

uint32_t hf__shm_watch_died(struct shm *s, struct shm_wait *w, unsigned i)
{
    uint32_t slot = atomic_load(&w->watch.slot[i]) % SHM_SLOTS;

    if (!slot || atomic_load(&s->file->slot[slot].alive) ==
                     atomic_load(&w->watch.word[i]))
        return 0;
    return slot;
}

/* Returns true if nothing woke the wait before its time was up and the watched
 * processes have not been checked for RECHECK_NS. Notes that they are checked
 * now. */
static bool watch_has_waited_in_vain(struct shm *s, struct shm_wait *w)
{
    unsigned cell = atomic_load(&w->cell) % SHM_CELLS;
    hf__time now = s->core->now();

    if (atomic_load(&s->file->cell[cell].bell) != atomic_load(&w->watch.bell) ||
        now < atomic_load(&w->watch.until) || now < w->verify_at)
        return false;
    w->verify_at = now + RECHECK_NS;
    return true;
}

/* If nothing woke the wait, a client may have died without the kernel marking
 * its word. */
void hf__shm_pass_on_death(struct shm *s, struct shm_wait *w)
{
    bool in_vain = watch_has_waited_in_vain(s, w);
    uint32_t slot;

    for (unsigned i = 0; i < SHM_WATCHED; i++) {
        if ((slot = hf__shm_watch_died(s, w, i)))
            hf__shm_wake_watchers(s, slot);
        else if (in_vain && (slot = atomic_load(&w->watch.slot[i])))
            hf__shm_mark_unmarked(s, slot);
    }
}

/* Returns the liveness word of a client that is alive, after setting
 * FUTEX_WAITERS in it; or 0 if the client is not alive. */
static uint32_t watch_word(struct shm *s, uint32_t owner)
{
    shm_u32 *alive = &s->file->slot[owner & SHM_SLOT_MASK].alive;
    uint32_t word = atomic_load(alive);
    struct shm_retry retry = {0};

    while ((word & FUTEX_TID_MASK) && !(word & FUTEX_WAITERS) &&
           !(word & FUTEX_OWNER_DIED) &&
           !atomic_compare_exchange_weak(alive, &word, word | FUTEX_WAITERS) &&
           hf__shm_retry(s, &retry))
        ;
    SHM_POINT();
    return hf__shm_alive(s, owner) ? word | FUTEX_WAITERS : 0;
}

void hf__shm_watch(struct shm *s, struct shm_wait *w, const uint32_t *owners,
                   unsigned len, hf__time until)
{
    unsigned n = 0;
    hf__time latest;

    for (unsigned i = 0; i < len; i++) {
        uint32_t word = watch_word(s, owners[i]);

        if (!word)
            continue;
        atomic_store(&w->watch.word[n], word);
        atomic_store(&w->watch.slot[n++], owners[i] & SHM_SLOT_MASK);
    }
    for (unsigned i = n; i < SHM_WATCHED; i++)
        atomic_store(&w->watch.slot[i], 0);
    latest = s->core->now() + watch_patience(s, w);
    if (n < len)
        latest = hf__min_time(latest, watch_soon(s, w));
    else
        w->dying = 0;
    atomic_store(&w->watch.until, hf__min_time(until, latest));
}
