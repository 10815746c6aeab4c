/*
 * One lock's wait: what it sleeps on, its cell, and whether the helper thread
 * watches for it. The sleep itself is in park.c.
 */
#include "wait.h"

#include "base/list.h"
#include "file.h"
#include "lock_state.h"
#include "queue.h"
#include "wakeup.h"

int hf__shm_wait_make(struct shm *s, struct shm_lock *l,
                      struct hf__remote *remote)
{
    struct shm_wait *wait = atomic_load(&l->wait);

    if (!wait) {
        wait = s->core->alloc(s->client, sizeof(*wait));
        if (!wait)
            return s->core->why(s->client, HF_ENOMEM, "out of memory");
        atomic_init(&wait->cell, SHM_NO_CELL);
        wait->remote = remote;
        atomic_store(&l->wait, wait);
    }
    return hf__shm_file_still_there(s) ? 0 : HF_EBACKEND;
}

void hf__shm_wait_begin(struct shm *s, struct shm_lock *l, unsigned cell,
                        const struct hf__req *req)
{
    struct shm_wait *wait = atomic_load(&l->wait);
    struct shm_cell *c = &s->file->cell[cell];

    atomic_store(&c->lease_ms, req->fixed ? req->lease_ms : 0);
    atomic_store(&c->is_async, req->is_async);
    atomic_store(&c->announced, 0);
    atomic_store(&c->since, shm_wall_ms());
    wait->announced = false;
    wait->dying = 0;
    for (unsigned i = 0; i < SHM_WATCHED; i++)
        atomic_store(&wait->watch.slot[i], 0);
    atomic_store(&wait->cell, (uint16_t)cell);
    l->state = SHM_QUEUED;
    SHM_POINT();
}

static hf__time wait_add_async(struct shm *s, struct shm_wait *w)
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
    /* Wakes the helper thread, which then sleeps on the words of this wait,
     * too. */
    hf__shm_ring_doorbell(s, s->me);
    return until;
}

static void wait_remove_async(struct shm *s, struct shm_wait *w)
{
    /* in_async changes only under the mutex of the line, which the caller has
     * locked */
    if (!w->in_async)
        return;
    pthread_mutex_lock(&s->async_mutex);
    w->in_async = false;
    hf__list_remove(s->async, w);
    pthread_mutex_unlock(&s->async_mutex);
}

unsigned hf__shm_wait_end(struct shm *s, struct shm_lock *l)
{
    struct shm_wait *wait = atomic_load(&l->wait);

    wait_remove_async(s, wait);
    l->state = SHM_IDLE;
    return atomic_exchange(&wait->cell, SHM_NO_CELL);
}

void hf__shm_wait_announce(struct shm *s, struct shm_wait *w, unsigned behind)
{
    if (!w->announced && behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, behind);
    SHM_POINT();
    w->announced = true;
    atomic_store(&s->file->cell[atomic_load(&w->cell)].announced, 1);
}

int hf__shm_wait_sleep(struct shm *s, struct shm_wait *wait,
                       struct hf__req *req)
{
    req->poll_at = HF__NEVER; /* hf__shm_park reads watch.until instead */
    if (req->is_async)
        req->poll_at = wait_add_async(s, wait);
    else
        wait_remove_async(s, wait);
    return HF__QUEUED;
}
