/* The operations of a lock of any kind, off the fast path. Each calls the file
 * that implements the lock's kind. */
#include "lock.h"

#include "cell_lock.h"
#include "dead_clients.h"
#include "file.h"
#include "latch.h"
#include "lock_state.h"
#include "mutex.h"
#include "mutex_word.h"
#include "retry.h"
#include "shared_lock.h"
#include "wait.h"
#include "wakeup.h"
#include "watch.h"

int hf__shm_lock_let_go(struct shm *s, struct shm_lock *l)
{
    if (l->kind == HF_MUTEX)
        return hf__shm_mutex_let_go(s, l);
    if (l->kind == HF_LATCH)
        return hf__shm_latch_let_go(s, (struct shm_cell_lock *)l);
    return hf__shm_shared_let_go(s, (struct shm_cell_lock *)l);
}

int hf__shm_lock_abandon(void *self, struct hf__req *req)
{
    struct shm_lock *l = req->remote->impl;

    if (atomic_load(&l->hold_id) != req->hold_id)
        return HF__DONE;
    return hf__shm_lock_let_go(self, l) == HF_EBACKEND ? HF_EBACKEND : HF__DONE;
}

/* Returns whether the hold of this request has already been granted. The core
 * may repeat an attempt with the same hold id. */
static bool lock_still_held(struct shm *s, struct shm_lock *l,
                            struct hf__req *req)
{
    uint64_t mine = atomic_load(&l->mine);

    if (l->state != SHM_HELD)
        return false;
    req->token = mine;
    if (l->kind == HF_MUTEX)
        req->token = shm_token(atomic_load(&l->entry->epoch), mine);
    return l->kind == HF_MUTEX ||
           shm_cell_lock_has(s, (struct shm_cell_lock *)l);
}

int hf__shm_lock_attempt(struct shm *s, struct hf__req *req)
{
    struct shm_lock *l = req->remote->impl;
    struct shm_wait *wait;
    uint32_t dead = 0;
    int rc;

    if (shm_is_lost(s)) {
        hf__shm_lock_let_go(s, l);
        return hf__shm_file_lost(s);
    }
    /* An earlier hold or wait of the lock must be ended first. */
    if (atomic_load(&l->hold_id) != req->hold_id) {
        if (hf__shm_lock_let_go(s, l) == HF_EBACKEND)
            return HF_EBACKEND;
    } else if (lock_still_held(s, l, req)) {
        return HF__GRANTED;
    }
    atomic_store(&l->hold_id, req->hold_id);
    if (l->state == SHM_QUEUED) {
        wait = atomic_load(&l->wait);
        hf__shm_pass_on_death(s, wait);
        hf__shm_set_async(s, atomic_load(&wait->cell), req->is_async);
    }
    if (l->kind == HF_MUTEX)
        rc = hf__shm_mutex_attempt(s, l, req, &dead);
    else if (l->kind == HF_LATCH)
        rc = hf__shm_latch_attempt(s, req);
    else
        rc = hf__shm_shared_attempt(s, req, &dead);
    if (dead)
        hf__shm_bury(s, dead);
    return rc;
}

static int lock_renew_one(struct shm *s, const struct hf__renewal *item,
                          hf__time now)
{
    struct shm_lock *l = item->remote->impl;
    uint64_t mine = atomic_load(&l->mine), w;

    if (shm_is_lost(s))
        return HF_ENOTOWNER;
    if (l->kind != HF_MUTEX)
        return hf__shm_shared_renew(s, item, now);
    if (atomic_load(&l->hold_id) != item->hold_id)
        return HF_ENOTOWNER;
    w = atomic_load(&l->entry->word);
    if (!shm_is_grant(w, mine))
        return HF_ENOTOWNER;
    if ((w & SHM_LEASED) &&
        !hf__shm_mutex_lease_write(s, l->index, mine,
                                   now + item->lease_ms * HF__MS, true))
        return shm_is_grant(atomic_load(&l->entry->word), mine)
                   ? hf__shm_retry_refuse(s)
                   : HF_ENOTOWNER;
    return HF__DONE;
}

/* Prolongs the leases of the batch. For a hold without a lease, only checks
 * that it still exists. */
int hf__shm_lock_renew(void *self, struct hf__batch *batch)
{
    struct shm *s = self;

    batch->req.sent_at = s->core->now();
    for (size_t i = 0; i < batch->len; i++)
        batch->item[i].result =
            (int16_t)lock_renew_one(s, &batch->item[i], batch->req.sent_at);
    return HF__DONE;
}
