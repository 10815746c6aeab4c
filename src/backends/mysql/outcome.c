#include "outcome.h"

#include "backends/common/chance.h"
#include "clock.h"
#include "cmd.h"
#include "wait.h"
#include "wire.h"

/* A waiter also attempts on cmd after this time, in case its waiting connection
 * is dead, or another program owns the queue's user lock. */
#define CHECK_MS 4000        /* the shortest time between checks */
#define CHECK_SPREAD_MS 4000 /* a random time up to this is added */
#define NAPS 3               /* how often an attempt may pause */
#define NAP_MS 10
#define EXPIRY_SLACK_MS 2

void hf__my_attempt_again(struct mysql *m, struct hf__req *req)
{
    int rc = hf__my_resend(m, req);

    if (rc != HF__PENDING)
        hf__my_finish(m, req, rc);
}

/* ---- whose turn it is ---------------------------------------------------- */

/* Two kinds of attempts do not overtake the waiters: those for a fair lock, and
 * those to read, because writers would otherwise starve. They may overtake if
 * the first waiter seems not to take the lock (seen_free), or if the lock
 * polls. */
bool hf__my_must_queue(const struct mysql *m, const struct my_lock *lock)
{
    const struct hf__remote *r = lock->remote;
    bool reads = r->kind == HF_RWLOCK && r->mode == HF_READ;

    return (r->fair || reads) && !m->polls && !hf__my_is_first(lock) &&
           !lock->seen_free && !(lock->polls && !lock->wait);
}

void hf__my_put_turn(struct mysql *m, const struct my_lock *lock, bool bell)
{
    bool queues = hf__my_must_queue(m, lock);

    hf__my_sql(&m->cmd, queues && bell ? "set @b=if(" MY_HAVE_BELL
                                         ",1,if(" MY_OUR_TURN
                                         ",get_lock('hfb:%Q',0),null));"
                        : queues ? "set @b=if(" MY_OUR_TURN ",1,null);"
                        : bell && !m->polls ? "set @b=if(" MY_HAVE_BELL
                                              ",1,get_lock('hfb:%Q',0));"
                                            : "set @b=0;");
}

/* ---- naps --------------------------------------------------------------- */

/* Pauses the attempt in the client, because a pause at the server would delay
 * all requests after the attempt. */
static void outcome_nap(struct mysql *m, struct hf__req *req, hf__time now)
{
    struct my_lock *lock = req->remote->impl;

    lock->naps++;
    lock->step = MY_STEP_SELECT;
    lock->napping = req;
    lock->nap_until = now + NAP_MS * HF__MS;
    lock->next_nap = m->naps;
    m->naps = lock;
    m->core->due(m->client, lock->nap_until);
}

void hf__my_nap_end(struct mysql *m, struct my_lock *lock)
{
    struct my_lock **at = &m->naps;

    while (*at && *at != lock)
        at = &(*at)->next_nap;
    if (*at)
        *at = lock->next_nap;
    lock->napping = NULL;
}

void hf__my_naps_advance(struct mysql *m, hf__time now)
{
    for (struct my_lock **at = &m->naps, *lock; (lock = *at);) {
        struct hf__req *req = lock->napping;

        if (now < lock->nap_until) {
            at = &lock->next_nap;
            continue;
        }
        *at = lock->next_nap;
        lock->napping = NULL;
        hf__my_attempt_again(m, req);
    }
}

hf__time hf__my_naps_timeout(const struct mysql *m)
{
    hf__time at = HF__NEVER;

    for (const struct my_lock *lock = m->naps; lock; lock = lock->next_nap)
        at = hf__min_time(at, lock->nap_until);
    return at;
}

void hf__my_granted(struct mysql *m, struct hf__req *req, uint64_t token)
{
    struct my_lock *lock = req->remote->impl;

    lock->crowded = hf__my_waited(lock, m->core->now());
    hf__my_wait_end(m, lock);
    req->token = token;
    hf__my_finish(m, req, HF__GRANTED);
}

/* Returns a random pause before the next poll, in ms: 50 to 100 at first. With
 * each poll the upper limit doubles, up to MY_POLL_MAX_MS. */
static int64_t outcome_poll_ms(struct mysql *m, struct my_lock *lock)
{
    uint32_t most = 2 * MY_POLL_MS << (lock->polls < 4 ? lock->polls : 4);

    most = most < MY_POLL_MAX_MS ? most : MY_POLL_MAX_MS;
    if (lock->polls < 4)
        lock->polls++;
    return MY_POLL_MS + hf__chance(&m->chance, most - MY_POLL_MS + 1);
}

/* Returns the pause before the next check, in ms. If the holder owns the bell,
 * the first waiter also checks at the time at which the hold expires, because
 * the holder's process may be stopped and then does not release the bell. */
static int64_t outcome_check_ms(struct mysql *m, struct my_lock *lock,
                                const struct my_place *p)
{
    int64_t ms = p->free && !lock->seen_free
                     ? MY_FREE_MS
                     : CHECK_MS + hf__chance(&m->chance, CHECK_SPREAD_MS);
    uint64_t end = p->left_us / 1000 + EXPIRY_SLACK_MS;

    return hf__my_is_first(lock) && p->rings && end < (uint64_t)ms
               ? (int64_t)end
               : ms;
}

/* Without may_queue, an attempt may find the lock free but another client in
 * the queue. It is then not BUSY at once: that client may be the last holder,
 * whose statement to leave the queue has not reached the server yet. The
 * attempt therefore naps. */
void hf__my_refused(struct mysql *m, struct hf__req *req,
                    const struct my_place *p, hf__time now)
{
    struct my_lock *lock = req->remote->impl;
    bool rang = lock->rang;
    int64_t ms;

    if (!req->may_queue && p->free && lock->naps < NAPS) {
        outcome_nap(m, req, now);
        return;
    }
    if (!req->may_queue) {
        hf__my_wait_end(m, lock);
        hf__my_finish(m, req, HF__BUSY);
        return;
    }
    if (hf__my_wait(m, lock, p->rings, req->permits))
        ms = outcome_check_ms(m, lock, p);
    else
        ms = outcome_poll_ms(m, lock);
    lock->seen_free = p->free && lock->wait && !hf__my_is_first(lock);
    lock->rang = false;
    req->poll_at = now + ms * HF__MS;
    hf__my_finish(m, req, HF__QUEUED);
    if (rang)
        m->core->bell(m->client, req->remote);
}

/* ---- another kind ------------------------------------------------------- */

/* Writes a transaction that converts the name if it is unused: an unused name
 * may become a lock of any kind and size. */
void hf__my_convert(struct mysql *m)
{
    hf__my_sql(
        &m->cmd,
        "start transaction;select kind into @k from holdfast_locks "
        "where name=%N for update;delete from holdfast_holds where "
        "name=%N and lease_until<=" MY_NOW
        ";update holdfast_locks set kind=%K,size=%S,hold=0,"
        "lease_until=" MY_PAST " where name=%N and (kind<>1 or "
        "lease_until<=" MY_NOW
        ") and (kind<>4 or size=0) and not exists(select 1 from "
        "holdfast_holds where name=%N);commit;select kind=%K and size=%S,kind,"
        "size from holdfast_locks where name=%N");
}

/* `row` has the name's kind and size, or is NULL if they are not known. */
static void outcome_mismatched(struct mysql *m, struct hf__req *req,
                               const struct my_row *row)
{
    if (req->remote->kind == HF_SEMAPHORE && hf__my_num(row, 1) == HF_SEMAPHORE)
        m->core->why(
            m->client, HF_EMISMATCH, "the semaphore has %llu permits, not %u",
            (unsigned long long)hf__my_num(row, 2), req->remote->permits);
    else
        m->core->why(m->client, HF_EMISMATCH,
                     "the name is in use as another kind of lock%s",
                     req->remote->kind == HF_SEMAPHORE && !row
                         ? ", or as a semaphore of another size"
                         : "");
    hf__my_wait_end(m, req->remote->impl);
    hf__my_finish(m, req, HF_EMISMATCH);
}

void hf__my_other_kind(struct mysql *m, struct hf__req *req)
{
    struct my_lock *lock = req->remote->impl;

    if (lock->conversion) {
        outcome_mismatched(m, req, NULL);
        return;
    }
    lock->conversion = MY_CONVERTING;
    hf__my_attempt_again(m, req);
}

int hf__my_converted(struct mysql *m, struct hf__req *req,
                     const struct my_answer *a)
{
    const struct my_row *row = a->last->rows;
    struct my_lock *lock = req->remote->impl;

    lock->conversion = MY_CONVERTED;
    lock->step = MY_STEP_UPSERT;
    if (a->last->columns != 3)
        return HF_EPROTO;
    if (hf__my_num(row, 0))
        hf__my_attempt_again(m, req);
    else
        outcome_mismatched(m, req, row);
    return 0;
}
