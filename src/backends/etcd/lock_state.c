#include "lock_state.h"

#include "entry_request.h"
#include "etcd.h"

struct et_lock *hf__et_lock_of(const struct etcd *e, uint64_t hold_id)
{
    struct et_lock *l = e->locks;

    while (l && l->hold_id != hold_id)
        l = l->next;
    return l;
}

void hf__et_lock_taken(struct et_lock *l)
{
    l->rev = 0;
    l->maybe = l->is_late = false;
    l->mark = ET_UNMARKED;
    hf__et_unhold(l);
}

/* A DROP is not cancelled, because its answer tells whether the entry still
 * existed. */
void hf__et_lock_over(struct et_lock *l, const char *why)
{
    bool was_late = l->is_late && hf__et_is_dropped(l);

    if (!hf__et_is_dropped(l))
        hf__et_request_forget(l);
    if (l->state == ET_HELD)
        l->e->core->lost(l->e->client, l->remote, l->hold_id, why);
    hf__et_lock_taken(l);
    l->doubt = false;
    l->is_late = was_late;
    hf__et_unproved(l);
}

void hf__et_finish(struct etcd *e, struct hf__req *req, int result)
{
    struct et_lock *l = req->remote ? req->remote->impl : NULL;

    if (l && l->attempt == req)
        l->attempt = NULL;
    if (l && l->let_go == req)
        l->let_go = NULL;
    req->result = (int16_t)result;
    e->core->done(e->client, req);
}
