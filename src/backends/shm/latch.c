/*
 * The latch: a count in a word that clients swap, and a cell for each client
 * that waits until the count is 0. The waiters have no order and watch no other
 * client; each sleeps on its bell. A wait ends when the count is 0, or when the
 * waiter finds that the count has been 0 in the meantime: the round (layout.h)
 * has then changed. A client that sets the latch again at once therefore does
 * not delay the earlier waiters.
 *
 * The entry of a latch stays in use until the count is 0, even if all clients
 * of the latch have died. If the client that counted down to 0 is killed before
 * it has rung all bells, the waiters that it has not rung notice at their next
 * check.
 */
#include "latch.h"

#include "cell_lock.h"
#include "lock_state.h"
#include "queue.h"
#include "retry.h"
#include "wait.h"
#include "wakeup.h"
#include "watch.h"

static uint32_t latch_round_of(uint64_t word)
{
    return (uint32_t)(word >> 33);
}

/* Sets QUEUE, so that the client that counts down to 0 rings us. Returns false
 * if the word has changed. */
static bool latch_announce(struct shm_entry *e, uint64_t word)
{
    if (word & SHM_LATCH_QUEUE)
        return true;
    SHM_POINT();
    return atomic_compare_exchange_strong(&e->word, &word,
                                          word | SHM_LATCH_QUEUE);
}

int hf__shm_latch_let_go(struct shm *s, struct shm_cell_lock *l)
{
    if (l->lock.state == SHM_QUEUED) {
        hf__shm_cell_lock_dequeue(s, l);
        shm_cell_lock_rest(s, l);
    }
    return HF__DONE;
}

int hf__shm_latch_attempt(struct shm *s, struct hf__req *req)
{
    struct shm_cell_lock *l = req->remote->impl;
    struct shm_cell *cells = s->file->cell;
    struct shm_retry retry = {.of = l->lock.entry};

    req->token = 0;
    do {
        struct shm_wait *wait = atomic_load(&l->lock.wait);
        uint64_t w;
        int rc;

        if (l->lock.state == SHM_QUEUED)
            atomic_store(&wait->watch.bell,
                         atomic_load(&cells[atomic_load(&l->cell)].bell));
        w = atomic_load(&l->lock.entry->word);
        if (!shm_left(w) ||
            (l->lock.state == SHM_QUEUED && latch_round_of(w) != l->round)) {
            hf__shm_latch_let_go(s, l);
            req->is_zero = !shm_left(w);
            return HF__GRANTED;
        }
        if (l->lock.state == SHM_QUEUED) {
            if (!latch_announce(l->lock.entry, w))
                continue;
            hf__shm_watch(s, wait, NULL, 0, HF__NEVER);
            return hf__shm_wait_sleep(s, wait, req);
        }
        if (!req->may_queue)
            return HF__BUSY;
        l->round = latch_round_of(w);
        if ((rc = hf__shm_cell_lock_take_cell(s, l, req->remote)) ||
            (rc = hf__shm_cell_lock_enqueue(s, l, req)))
            return rc;
    } while (hf__shm_retry(s, &retry));
    hf__shm_latch_let_go(s, l);
    return hf__shm_retry_refuse(s);
}

static void latch_ring_all(struct shm *s, unsigned index)
{
    unsigned n = 0;

    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (atomic_load(&s->file->cell[n].ticket))
            hf__shm_ring_cell(s, n);
}

int hf__shm_latch_count_down(struct shm *s, unsigned index, bool all,
                             uint32_t *left)
{
    struct shm_entry *e = &s->file->entry[index];
    uint64_t w = atomic_load(&e->word), new;
    struct shm_retry retry = {.of = e};

    do {
        *left = 0;
        if (!shm_left(w))
            return HF_ENOTOWNER;
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
        *left = all ? 0 : shm_left(w) - 1;
        new = w - 1;
        if (!*left)
            new = (w & ~(SHM_LEFT_MASK | SHM_LATCH_QUEUE)) + SHM_ROUND_ONE;
        SHM_POINT();
    } while (!atomic_compare_exchange_weak(&e->word, &w, new));
    SHM_POINT();
    if (!*left && (w & SHM_LATCH_QUEUE))
        latch_ring_all(s, index);
    return HF__DONE;
}

int hf__shm_latch_set(struct shm *s, struct shm_entry *e, uint64_t *count)
{
    uint64_t w = atomic_load(&e->word);
    struct shm_retry retry = {.of = e};

    do {
        if (shm_left(w)) {
            *count = shm_left(w);
            return HF_EBUSY;
        }
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
        SHM_POINT();
    } while (
        !atomic_compare_exchange_weak(&e->word, &w, w | (*count & INT32_MAX)));
    SHM_POINT();
    return HF__DONE;
}
