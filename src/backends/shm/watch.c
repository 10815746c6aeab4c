/*
 * Sleeping and being woken. A waiter's thread sleeps in futex_waitv(2) on
 * some words at once: its cell's bell, the liveness words of the clients that
 * it waits behind (mostly one), and the private word by which its own process
 * gets it out. Where that call is missing (before Linux 5.16) or forbidden, it
 * sleeps on the bell alone and looks at the rest every 50 ms.
 *
 * Nothing can be missed: the bell was read before the lock's word was looked
 * at, and the liveness word as it was when its owner was seen alive; if either
 * has changed since, the kernel does not let us sleep.
 *
 * The kernel wakes one of those who sleep on the word of the dead. So whoever
 * notices a death wakes the others, before anything else. But the one may be
 * stopped, or be killed as well. Hence those who are not alone with a word look
 * at it now and then; the less often the more they are, for one is enough.
 *
 * For asynchronous waits nobody sleeps: the helper thread does, on its own
 * doorbell (by which those who listen are reached, too: notify.c) and on all
 * liveness words that they watch. Without futex_waitv the core is told to look
 * every 50 ms.
 *
 * Deadlines are of CLOCK_BOOTTIME, which goes on while the machine is
 * suspended; a futex knows only clocks that stand still then, or that people
 * set. So no sleep is long, and a deadline that passed during a suspend is
 * seen at most that long after it.
 */
#include "shm.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* Of our own, since headers older than the kernel do not have it. */
struct wait_on {
    uint64_t value;
    uint64_t address;
    uint32_t flags; /* 2: 32 bits; 128: private */
    uint32_t reserved;
};

void hf__shm_futex_wake(shm_u32 *word, int how_many)
{
    syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

void hf__shm_ring_doorbell(struct shm *s, uint32_t owner)
{
    shm_u32 *doorbell = &s->file->slot[owner & SHM_SLOT_MASK].doorbell;

    atomic_fetch_add(doorbell, 1);
    hf__shm_futex_wake(doorbell, INT_MAX);
}

void hf__shm_ring_cell(struct shm *s, unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    uint32_t owner = atomic_load(&c->owner);

    SHM_POINT();
    atomic_fetch_add(&c->bell, 1);
    SHM_POINT();
    if (atomic_load(&c->is_async))
        hf__shm_ring_doorbell(s, owner);
    else
        hf__shm_futex_wake(&c->bell, INT_MAX);
    SHM_POINT();
}

void hf__shm_wait_announce(struct shm *s, struct shm_wait *w, unsigned behind)
{
    if (!w->announced && behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, behind);
    SHM_POINT();
    w->announced = true;
    atomic_store(&s->file->cell[atomic_load(&w->cell)].announced, 1);
}

void hf__shm_wake_cell(struct shm *s, unsigned cell)
{
    shm_u32 *bell = &s->file->cell[cell].bell;

    atomic_fetch_add(bell, 1);
    hf__shm_futex_wake(bell, INT_MAX);
    SHM_POINT();
}

/* Where nothing but the doorbell was rung so far somebody may sleep all the
 * same, by what an earlier check has found: the helper thread does not watch
 * for it any more. */
void hf__shm_set_async(struct shm *s, unsigned cell, bool is_async)
{
    if (atomic_exchange(&s->file->cell[cell].is_async, is_async) && !is_async)
        hf__shm_wake_cell(s, cell);
}

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

/* The process is marked but not gone: look again soon. That lasts for a moment;
 * where it does not (a core is being written), less often. */
static hf__time soon(struct shm *s, struct shm_wait *w)
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

/* The cell's watched slots are those of w. How long to sleep beside the others
 * who watch them. */
static hf__time patience(struct shm *s, struct shm_wait *w)
{
    struct shm_cell *c = &s->file->cell[atomic_load(&w->cell)];
    hf__time nap = SHM_RECHECK_NS, crowd;
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

/* The slot that w watches at that place, if its client has died since. */
static uint32_t died(struct shm *s, struct shm_wait *w, unsigned i)
{
    uint32_t slot = atomic_load(&w->watch.slot[i]) % SHM_SLOTS;

    if (!slot || atomic_load(&s->file->slot[slot].alive) ==
                     atomic_load(&w->watch.word[i]))
        return 0;
    return slot;
}

/* Nothing has woken it, and it has not asked for a while. */
static bool has_waited_in_vain(struct shm *s, struct shm_wait *w)
{
    unsigned cell = atomic_load(&w->cell) % SHM_CELLS;
    hf__time now = s->core->now();

    if (atomic_load(&s->file->cell[cell].bell) != atomic_load(&w->watch.bell) ||
        now < atomic_load(&w->watch.until) || now < w->verify_at)
        return false;
    w->verify_at = now + SHM_RECHECK_NS;
    return true;
}

/* Others may sleep on the word that woke us; or there was a death, and nothing
 * told us of it. */
void hf__shm_pass_on_death(struct shm *s, struct shm_wait *w)
{
    bool in_vain = has_waited_in_vain(s, w);
    uint32_t slot;

    for (unsigned i = 0; i < SHM_WATCHED; i++) {
        if ((slot = died(s, w, i)))
            hf__shm_wake_watchers(s, slot);
        else if (in_vain && (slot = atomic_load(&w->watch.slot[i])))
            hf__shm_mark_unmarked(s, slot);
    }
}

/* The liveness word of one who is alive, made ready to be slept on; 0: it is
 * not. */
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
    latest = s->core->now() + patience(s, w);
    if (n < len)
        latest = hf__min_time(latest, soon(s, w));
    else
        w->dying = 0;
    atomic_store(&w->watch.until, hf__min_time(until, latest));
}

static struct timespec monotonic(hf__time from_now)
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

static void wait_for(struct wait_on *on, const void *word, uint32_t value,
                     bool is_private)
{
    *on = (struct wait_on){value, (uint64_t)(uintptr_t)word,
                           is_private ? 2 | 128 : 2, 0};
}

/* False: it did not sleep. A filter may answer for the kernel, with whatever it
 * likes. */
static bool sleep_on(struct shm *s, struct wait_on *on, unsigned len,
                     hf__time from_now)
{
    struct timespec until = monotonic(from_now);

    if (atomic_load_explicit(&s->no_waitv, memory_order_relaxed))
        return false;
    if (syscall(SYS_futex_waitv, on, len, 0, &until, CLOCK_MONOTONIC) >= 0 ||
        errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR)
        return true;
    if (errno != ENOMEM)
        atomic_store(&s->no_waitv, true);
    return false;
}

void hf__shm_futex_wait(const void *word, int op, uint32_t value,
                        hf__time from_now)
{
    struct timespec nap = {from_now / (1000 * HF__MS),
                           from_now % (1000 * HF__MS)};

    syscall(SYS_futex, word, op, value, &nap, NULL, 0);
}

static void helper_park(struct shm *s, uint32_t *word, uint32_t expect,
                        hf__time until)
{
    struct shm_slot *slots = s->file->slot;
    struct wait_on on[2 + SHM_WATCHED_MAX];
    uint64_t seen[SHM_MAP_LEN] = {0};
    bool is_relied_on = !atomic_load(&s->no_waitv) || s->listens;
    unsigned len = 2;
    hf__time left;

    if (!shm_is_lost(s)) /* who only holds does not ask */
        hf__shm_file_still_there(s);
    if (s->early_marks)
        until = hf__min_time(until, s->core->now() + SHM_POLL_NS);
    wait_for(&on[0], word, expect, true);
    wait_for(&on[1], &slots[s->me & SHM_SLOT_MASK].doorbell, s->doorbell_seen,
             false);
    pthread_mutex_lock(&s->async_mutex);
    for (struct shm_wait *w = s->async; w; w = w->next) {
        until = hf__min_time(until, atomic_load(&w->watch.until));
        for (unsigned i = 0; i < SHM_WATCHED; i++) {
            uint32_t slot = atomic_load(&w->watch.slot[i]);

            if (!slot || (seen[slot / 64] >> slot % 64 & 1))
                continue;
            seen[slot / 64] |= 1ULL << slot % 64;
            if (len < 2 + SHM_WATCHED_MAX)
                wait_for(&on[len++], &slots[slot].alive,
                         atomic_load(&w->watch.word[i]), false);
            else
                until = hf__min_time(until, s->core->now() + SHM_POLL_NS);
        }
    }
    left = hf__min_time(until - s->core->now(), SHM_NAP_NS);
    is_relied_on = is_relied_on || s->async;
    pthread_mutex_unlock(&s->async_mutex);
    if (left <= 0 || sleep_on(s, on, len, left))
        return;
    /* By its own word alone it does not hear the doorbell: those who wait
     * asynchronously, and those who come before they know, rely on it, and
     * those who listen. */
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
        return; /* it has another place by now, and that is its bell */
    wait_for(&on[0], &s->file->cell[cell].bell, bell, false);
    wait_for(&on[1], word, expect, true);
    for (unsigned i = 0; i < SHM_WATCHED; i++)
        if ((slot = atomic_load(&w->watch.slot[i])))
            wait_for(&on[len++], &s->file->slot[slot].alive,
                     atomic_load(&w->watch.word[i]), false);
    left = hf__min_time(until, atomic_load(&w->watch.until)) - s->core->now();
    if (left > 0 && !sleep_on(s, on, len, left) &&
        __atomic_load_n(word, __ATOMIC_ACQUIRE) == expect)
        hf__shm_futex_wait(&s->file->cell[cell].bell, FUTEX_WAIT, bell,
                           hf__min_time(left, SHM_POLL_NS));
}

hf__time hf__shm_async_add(struct shm *s, struct shm_wait *w)
{
    hf__time until = atomic_load(&w->watch.until);

    pthread_mutex_lock(&s->async_mutex);
    if (!w->in_async) {
        w->in_async = true;
        hf__list_add(s->async, w);
    }
    w->rung = false;
    pthread_mutex_unlock(&s->async_mutex);
    if (atomic_load(&s->no_waitv))
        return hf__min_time(until, s->core->now() + SHM_POLL_NS);
    hf__shm_ring_doorbell(s,
                          s->me); /* the helper thread shall arm itself anew */
    return until;
}

void hf__shm_async_remove(struct shm *s, struct shm_wait *w)
{
    if (!w->in_async) /* only set and cleared under the name's mutex */
        return;
    pthread_mutex_lock(&s->async_mutex);
    w->in_async = false;
    hf__list_remove(s->async, w);
    pthread_mutex_unlock(&s->async_mutex);
}

static bool is_due(struct shm *s, struct shm_wait *w, hf__time now)
{
    unsigned cell = atomic_load(&w->cell);

    if (cell == SHM_NO_CELL)
        return false;
    if (atomic_load(&s->file->cell[cell].bell) != atomic_load(&w->watch.bell))
        return true;
    if (now >= atomic_load(&w->watch.until))
        return true;
    for (unsigned i = 0; i < SHM_WATCHED; i++)
        if (died(s, w, i))
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
        if (!w->rung && is_due(s, w, now)) {
            w->rung = true;
            s->core->bell(s->client, w->remote);
        }
    pthread_mutex_unlock(&s->async_mutex);
    hf__shm_notify_poll(s);
}
