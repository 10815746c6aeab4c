/*
 * Shared memory, for locks between the processes of one machine: one mapped
 * file, no server, nothing to renew. backend.h says what the functions of the
 * table must do.
 *
 * A hold without a lease lasts as long as its process lives (HF__ENDLESS).
 */
#include "shm.h"

#include "attach.h"
#include "client_slot.h"
#include "fast_path.h"
#include "file.h"
#include "lock.h"
#include "park.h"
#include "query.h"
#include "shm_backend.h"

#include <stdlib.h>

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
    .taken = "it is no longer held (broken by another client)",
    .open = shm_open,
    .close = shm_close,
    .advance = hf__shm_advance,
    .park = hf__shm_park,
    .attach = hf__shm_attach,
    .detach = hf__shm_detach,
    .attempt = hf__shm_fast_attempt,
    .release = hf__shm_fast_release,
    .abandon = hf__shm_lock_abandon,
    .renew = hf__shm_lock_renew,
    .query = hf__shm_query,
};
