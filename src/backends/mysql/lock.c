#include "lock.h"

#include "aside.h"
#include "cmd.h"
#include "latch.h"
#include "mutex.h"
#include "name.h"
#include "outcome.h"
#include "share.h"
#include "wait.h"
#include "wire.h"

/* ---- a lock ------------------------------------------------------------- */

int hf__my_attach(void *self, struct hf__remote *remote)
{
    struct mysql *m = self;
    struct my_lock *lock;

    if (remote->name_len > HF_NAME_MAX)
        return HF_EINVAL;
    lock = m->core->alloc(m->client, sizeof(*lock));
    if (!lock)
        return HF_ENOMEM;
    lock->remote = remote;
    hf__my_hash(m, remote->name, remote->name_len, lock->hash);
    remote->impl = lock;
    return 0;
}

void hf__my_detach(void *self, struct hf__remote *remote)
{
    struct mysql *m = self;

    if (!remote->impl)
        return;
    hf__my_nap_end(m, remote->impl);
    hf__my_wait_end(m, remote->impl);
    m->core->free(m->client, remote->impl);
    remote->impl = NULL;
}

/* ---- slots -------------------------------------------------------------- */

/* If the lock had to wait for its last grant, makes it wait in the server's
 * queue at once, without an attempt. This saves a round trip where many clients
 * want the lock. Returns whether the lock waits now. */
static bool lock_goes_to_the_queue(struct mysql *m, struct hf__req *req)
{
    struct my_lock *lock = req->remote->impl;
    hf__time now;

    if (!lock->crowded || lock->wait || lock->sent || !req->may_queue ||
        !hf__my_must_queue(m, lock) || m->put_off ||
        m->cmd.link.state != NET_UP)
        return false;
    now = m->core->now();
    req->sent_at = now;
    req->poll_at = now + MY_FREE_MS * HF__MS;
    return hf__my_wait(m, lock, true, req->permits);
}

int hf__my_attempt(void *self, struct hf__req *req)
{
    struct mysql *m = self;
    struct my_lock *lock = req->remote->impl;
    int rc;

    if (lock->attempt_id != req->hold_id) {
        lock->sent = lock->seen_free = false;
        lock->conversion = MY_NOT_CONVERTED;
        lock->polls = lock->naps = 0;
        lock->round = 0;
    }
    lock->attempt_id = req->hold_id;
    if (lock_goes_to_the_queue(m, req))
        return HF__QUEUED;
    lock->attempting = true;
    lock->rang = false;
    lock->step = lock->wait ? !hf__my_is_first(lock) : lock->crowded;
    lock->tries = 0;
    rc = hf__my_submit(m, req);
    if (rc != HF__PENDING)
        lock->attempting = false;
    return rc;
}

int hf__my_release(void *self, struct hf__req *req)
{
    if (req->remote->kind == HF_LATCH)
        return HF__DONE; /* a latch has no holder */
    return hf__my_submit(self, req);
}

int hf__my_abandon(void *self, struct hf__req *req)
{
    struct mysql *m = self;
    struct my_lock *lock = req->remote->impl;
    bool is_latch = req->remote->kind == HF_LATCH;

    /* A repeated abandon may be about a hold id that is older than that of the
     * last attempt. */
    if (lock->attempt_id != req->hold_id)
        return is_latch ? HF__DONE : hf__my_submit(m, req);
    if (req->remote->attempt)
        hf__my_forget(m, req->remote->attempt);
    hf__my_nap_end(m, lock);
    lock->attempting = false;
    hf__my_wait_end(m, lock);
    if (!lock->sent || is_latch)
        return HF__DONE; /* nothing to end: no packet was sent, or the lock is a
                            latch, which has no hold */
    return hf__my_submit(m, req);
}

/* ---- statements --------------------------------------------------------- */

int hf__my_verb_encode(struct mysql *m, struct hf__req *req)
{
    struct my_lock *lock = req->remote->impl;
    bool takes = req->op == HF__ATTEMPT;
    struct my_flight *f;

    hf__my_start(m, req);
    if (takes && lock->conversion == MY_CONVERTING)
        hf__my_convert(m);
    else if (req->remote->kind == HF_LATCH)
        hf__my_latch_take(m);
    else if (req->remote->kind == HF_MUTEX)
        (takes ? hf__my_mutex_take : hf__my_mutex_drop)(m, req);
    else if (takes)
        hf__my_share_take(m, req);
    else
        hf__my_share_drop(m);
    f = hf__my_sent(m, req);
    if (!f)
        return HF_ENOMEM;
    f->fresh = takes && !lock->sent;
    lock->sent = lock->sent || takes;
    return 0;
}

/* ---- answers ------------------------------------------------------------ */

static int lock_attempt_answer(struct mysql *m, struct hf__req *req,
                               const struct my_answer *a)
{
    const struct my_lock *lock = req->remote->impl;

    if (lock->conversion == MY_CONVERTING)
        return hf__my_converted(m, req, a);
    if (req->remote->kind == HF_MUTEX)
        return hf__my_mutex_taken(m, req, a);
    if (req->remote->kind == HF_LATCH)
        return hf__my_latch_taken(m, req, a);
    return hf__my_share_taken(m, req, a);
}

int hf__my_verb_answer(struct mysql *m, const struct my_flight *f,
                       const struct my_answer *a)
{
    if (f->op == HF__ATTEMPT)
        return f->req ? lock_attempt_answer(m, f->req, a) : 0;
    if (a->last->columns)
        hf__my_ring(m, hf__my_num(a->last->rows, 0));
    if (f->req)
        hf__my_finish(m, f->req,
                      a->first->affected || f->op == HF__ABANDON
                          ? HF__DONE
                          : HF_ENOTOWNER);
    return 0;
}
