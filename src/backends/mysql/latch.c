/*
 * Latches: the name's row has the count as its size, and as its token how often
 * it was set: by that a waiter knows whether it was 0 meanwhile. What counts
 * leaves a row in holdfast_requests, so that it counts once; these are tidied
 * up by the next ones.
 */
#include "latch.h"

#include "aside.h"
#include "clock.h"
#include "cmd.h"
#include "name.h"
#include "outcome.h"
#include "wire.h"

#define NOW "utc_timestamp(6)"
#define NAME q->name, q->name_len
#define REQUEST m->owner, MY_OWNER_LEN, q->request
/* Another kind of lock has the name. */
#define IN_USE                                                                 \
    "(kind=1 and lease_until>" NOW ") or (kind in(2,3) and exists(select 1 "   \
    "from holdfast_holds h where h.name=l.name and h.lease_until>" NOW "))"

/* ---- waiting ------------------------------------------------------------ */

void hf__my_latch_take(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;

    hf__my_sql(&m->cmd,
               "select if(kind=4,size,0),token," IN_USE
               " from holdfast_locks l where name=%x",
               r->name, (size_t)r->name_len);
}

int hf__my_latch_taken(struct mysql *m, struct hf__req *req,
                       const struct my_result *last, hf__time now)
{
    struct my_lock *lock = req->remote->impl;
    const struct my_row *row = last->rows;
    const struct my_place place = {.left_us = UINT64_MAX / 2};
    uint64_t round;

    if (last->columns != 3)
        return HF_EPROTO;
    round = hf__my_num(row, 1);
    req->is_zero = hf__my_num(row, 0) == 0;
    if (hf__my_num(row, 2)) {
        lock->conversion = MY_CONVERTED;
        hf__my_other_kind(m, req);
    } else if (req->is_zero || (lock->round && lock->round != round)) {
        hf__my_granted(m, req, 1);
    } else {
        lock->round = round;
        hf__my_refused(m, req, &place, now);
    }
    return 0;
}

/* ---- counting ----------------------------------------------------------- */

/* For longer than it can be sent again. */
static uint64_t latch_keep_ms(const struct mysql *m)
{
    return 3ULL * m->op_timeout_ms + 1000;
}

static void latch_put_answer(struct mysql *m, const struct hf__query *q)
{
    hf__my_sql(&m->cmd,
               "select " MY_CLOCK ",(select answer from holdfast_requests "
               "where name=%x and owner=%x and request=%u),"
               "(select if(kind=4,size,0) from holdfast_locks where name=%x),"
               "(select " IN_USE " from holdfast_locks l where name=%x)",
               NAME, REQUEST, NAME, NAME);
}

/* `when`: only then does it count. */
static void latch_put_request(struct mysql *m, const struct hf__query *q,
                              const char *when)
{
    hf__my_sql(&m->cmd,
               "delete from holdfast_requests where name=%x and keep_until<" NOW
               ";insert ignore into holdfast_requests(name,owner,request,"
               "answer,keep_until) select %x,%x,%u,0," NOW
               "+interval %u microsecond from dual where " MY_CLOCK
               "<%u and %s;",
               NAME, NAME, REQUEST, latch_keep_ms(m) * 1000,
               hf__my_late(m, &q->req), when);
}

/* The request is new. row_count() does not say so: it is -1 when the connection
 * is lost in the middle of the packet, whose other statements are still done.
 */
#define IS_NEW                                                                 \
    "exists(select 1 from holdfast_requests where name=%x and owner=%x and "   \
    "request=%u and answer=0)"

static void latch_put_set(struct mysql *m, const struct hf__query *q)
{
    hf__my_sql(&m->cmd,
               "start transaction;insert into holdfast_locks(name,kind,size,"
               "token,owner,hold,rings,fair,host,pid,label,since,lease_us,"
               "lease_until) values(%x,4,0,0,'',0,0,0,'',0,''," NOW
               ",0,'1970-01-02') on duplicate key update size=size;"
               "select token into @t from holdfast_locks where name=%x;",
               NAME, NAME);
    latch_put_request(m, q, "1");
    hf__my_sql(&m->cmd,
               "delete from holdfast_holds where name=%x and lease_until<=" NOW
               ";update holdfast_locks l set kind=4,size=%u,token=token+1,"
               "hold=0,lease_until='1970-01-02' where name=%x and " IS_NEW
               " and not(kind=4 and size>0) and not(" IN_USE
               ");update holdfast_requests set answer=if((select token from "
               "holdfast_locks where name=%x)=@t,2,1) where name=%x and "
               "owner=%x and request=%u and answer=0;commit;",
               NAME, q->count, NAME, NAME, REQUEST, NAME, NAME, REQUEST);
    latch_put_answer(m, q);
}

static void latch_put_down(struct mysql *m, const struct hf__query *q)
{
    hf__my_sql(&m->cmd,
               "start transaction;set @s=0;select size into @s from "
               "holdfast_locks where name=%x and kind=4 for update;",
               NAME);
    latch_put_request(m, q, "@s>0");
    hf__my_sql(&m->cmd,
               "update holdfast_locks set size=size-1 where name=%x and "
               "kind=4 and size>0 and " IS_NEW
               ";update holdfast_requests set answer=1 where name=%x and "
               "owner=%x and request=%u;commit;",
               NAME, NAME, REQUEST, NAME, REQUEST);
    latch_put_answer(m, q);
}

void hf__my_latch_put(struct mysql *m, const struct hf__query *q)
{
    if (q->req.op == HF__LATCH_SET)
        latch_put_set(m, q);
    else if (q->req.op == HF__LATCH_DOWN)
        latch_put_down(m, q);
    else
        latch_put_answer(m, q);
}

int hf__my_latch_counted(struct mysql *m, struct hf__query *q,
                         const struct my_result *first)
{
    const struct my_result *last = hf__my_last(first);
    const struct my_row *row = last->rows;
    bool sets = q->req.op == HF__LATCH_SET, was_late;
    uint8_t hash[MY_HASH_LEN];
    uint64_t left;

    if (last->columns != 4 || !row)
        return HF_EPROTO;
    hf__my_clock(m, hf__my_num(row, 0));
    left = hf__my_num(row, 2);
    was_late = !row->value[1].text; /* or there was nothing to count */
    if (hf__my_num(row, 1) != 1 && hf__my_num(row, 3))
        return m->core->why(m->client, HF_EMISMATCH,
                            "the name is in use as another kind of lock");
    if (q->req.op != HF__LATCH_GET && was_late && (sets || left))
        return hf__my_resend(m, &q->req);
    if (q->req.op == HF__LATCH_DOWN && !left) {
        hf__my_hash(m, NAME, hash);
        hf__my_ring_all(m, hash);
    }
    q->count = left;
    return sets && hf__my_num(row, 1) != 1 ? HF_EBUSY : HF__DONE;
}
