/*
 * Shared memory, for locks between the processes of one machine: one mapped
 * file, no server, nothing to renew. What the table promises is in backend.h;
 * the way through it that counts, an acquire and a release of a mutex that
 * nobody else contends, is two swaps of one word and is here, in two functions.
 * Everything else is in mutex_word.c, and in shared_word.c for the other kinds.
 *
 * A hold without a lease lasts for as long as its process lives (HF__ENDLESS).
 */
#include "shm.h"

static void shm_free(struct shm *s)
{
    pthread_mutex_destroy(&s->async_mutex);
    s->core->free(s->client, s->lock_counts);
    s->core->free(s->client, s);
}

static int shm_open(hf_client *client, const struct hf__core *core,
                    const struct hf__config *config, void **self)
{
    struct shm *s = core->alloc(client, sizeof(*s));
    hf__time by;
    int rc;

    if (!s)
        return core->why(client, HF_ENOMEM, "out of memory");
    s->client = client;
    s->core = core;
    s->fd = s->dir_fd = -1;
    s->label = config->label;
    s->listens = config->listens;
    pthread_mutex_init(&s->async_mutex, NULL);
    by = core->now() + config->open_timeout_ms * HF__MS * 9 / 10;
    rc = hf__shm_file_open(s, config);
    if (!rc)
        rc = hf__shm_slot_take(s, config->label, by);
    if (rc) {
        hf__shm_file_close(s);
        shm_free(s);
        return rc;
    }
    *self = s;
    return 0;
}

static void shm_close(void *self)
{
    struct shm *s = self;

    hf__shm_slot_give(s);
    hf__shm_file_close(s);
    shm_free(s);
}

static int shm_attempt(void *self, struct hf__req *req)
{
    struct shm *s = self;
    struct shm_lock *l = req->remote->impl;
    uint64_t word, new;

    if (l->kind != HF_MUTEX) {
        if (!shm_is_lost(s) && hf__shm_shared_take(s, req))
            return HF__GRANTED;
    } else if (__builtin_expect(l->state == SHM_IDLE && !req->fixed, 1) &&
               !shm_is_lost(s)) {
        word = atomic_load_explicit(&l->entry->word, memory_order_relaxed);
        new = (word + SHM_COUNT_ONE) | s->me;
        SHM_POINT();
        if (!(word & l->take_mask) &&
            atomic_compare_exchange_strong_explicit(&l->entry->word, &word, new,
                                                    memory_order_acquire,
                                                    memory_order_relaxed)) {
            SHM_POINT();
            if (__builtin_expect(shm_mutex_grant(s, l, req, new), 1))
                return HF__GRANTED;
        }
    }
    return hf__shm_lock_attempt(s, req);
}

static int shm_release(void *self, struct hf__req *req)
{
    struct shm_lock *l = req->remote->impl;
    uint64_t word = atomic_load_explicit(&l->mine, memory_order_relaxed);
    uint64_t flags = word & SHM_FLAGS;

    if (l->kind != HF_MUTEX)
        return hf__shm_shared_release(self, req);
    if (l->state != SHM_HELD ||
        atomic_load_explicit(&l->hold_id, memory_order_relaxed) != req->hold_id)
        return HF_ENOTOWNER;
    SHM_POINT();
    /* Nobody waits; or one who does is on the way, and may be late. */
    if ((!flags || (flags == (SHM_WAITERS | SHM_WAKING) && !shm_is_fair(l))) &&
        atomic_compare_exchange_strong_explicit(
            &l->entry->word, &word, word & ~SHM_OWNER_MASK,
            memory_order_release, memory_order_relaxed)) {
        SHM_POINT();
        l->state = SHM_IDLE;
        return HF__DONE;
    }
    return hf__shm_mutex_release(self, l);
}

#define LOCK_CAPS                                                              \
    (HF_CAP_FAIR | HF_CAP_LEASE | HF_CAP_EVENTS | HF_CAP_INSPECT |             \
     HF_CAP_WANTED)

const struct hf__backend hf__shm_backend = {
    .abi = HF__ABI,
    .name = "shm",
    .flags = HF__DIRECT | HF__ENDLESS,
    .caps = {[HF_MUTEX] = LOCK_CAPS | HF_CAP_UNFAIR,
             [HF_RWLOCK] = LOCK_CAPS,
             [HF_SEMAPHORE] = LOCK_CAPS,
             [HF_LATCH] = HF_CAP_EVENTS | HF_CAP_INSPECT},
    .fair_by_default = true,
    .options = "mode, group, waitv",
    .taken = "it was broken by another client",
    .open = shm_open,
    .close = shm_close,
    .advance = hf__shm_advance,
    .park = hf__shm_park,
    .attach = hf__shm_attach,
    .detach = hf__shm_detach,
    .attempt = shm_attempt,
    .release = shm_release,
    .abandon = hf__shm_lock_abandon,
    .renew = hf__shm_lock_renew,
    .query = hf__shm_query,
};
