/* Passes each query to the file that serves it. (Attempts, releases, abandons
 * and renewals are no queries and do not come here.) */
#include "query.h"

#include "attach.h"
#include "break.h"
#include "diagnose.h"
#include "file.h"
#include "inspect.h"
#include "latch.h"
#include "lock_state.h"
#include "name_table.h"
#include "notify.h"
#include "shared_lock.h"
#include "table_lock.h"

static int query_latch_request(struct shm *s, struct hf__query *q,
                               unsigned index)
{
    struct shm_entry *e = &s->file->entry[index];
    uint32_t left = shm_left(atomic_load(&e->word));
    int rc = HF__DONE;

    if (q->req.op == HF__LATCH_SET)
        return hf__shm_latch_set(s, e, &q->count);
    if (q->req.op == HF__LATCH_DOWN)
        rc = hf__shm_latch_count_down(s, index, false, &left);
    q->count = left;
    return rc == HF_ENOTOWNER ? HF__DONE : rc;
}

/* An answer cannot be lost here. Therefore the core repeats no request, and the
 * number of the request need not be stored. */
static int query_latch(struct shm *s, struct hf__query *q)
{
    struct hf__remote remote = {.name = q->name,
                                .name_len = (uint16_t)q->name_len,
                                .kind = HF_LATCH,
                                .label = s->label};
    int index = hf__shm_name_find(s, q->name, q->name_len, true), rc;

    if (index >= 0)
        return query_latch_request(s, q, (unsigned)index);
    rc = hf__shm_attach(s, &remote);
    if (rc)
        return rc;
    rc = query_latch_request(s, q,
                             ((struct shm_cell_lock *)remote.impl)->lock.index);
    hf__shm_detach(s, &remote);
    return rc;
}

int hf__shm_query(void *self, struct hf__query *q)
{
    struct shm *s = self;
    struct shm_thread thread;
    int rc;

    if (q->req.op == HF__DOWNGRADE)
        return hf__shm_shared_downgrade(s, q);
    if (!hf__shm_file_still_there(s))
        return HF_EBACKEND;
    switch (q->req.op) {
    case HF__LATCH_SET:
    case HF__LATCH_DOWN:
    case HF__LATCH_GET:
        return query_latch(s, q);
    case HF__DIAGNOSE:
        return hf__shm_diagnose(s, q);
    default:
        break;
    }
    rc = hf__shm_tables_lock(s, &thread, SHM_TABLES_NS, SHM_CROWD_NS);
    if (rc)
        return rc;
    if (q->req.op == HF__INSPECT)
        rc = hf__shm_inspect(s, q);
    else if (q->req.op == HF__LIST)
        rc = hf__shm_inspect_list(s, q);
    else if (q->req.op == HF__ASK)
        rc = hf__shm_notify_ask(s, q);
    else
        rc = hf__shm_break(s, q);
    hf__shm_tables_unlock(s, &thread);
    if (rc == HF_ENOMEM)
        s->core->why(s->client, rc, "out of memory");
    return rc;
}
