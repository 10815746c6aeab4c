/*
 * Latches. The row of a latch has the count in `size`, and in `token` how often
 * the latch was set. A latch can be set only while its count is 0. Therefore,
 * if the token has changed since a wait began, the count was 0 in between, and
 * the wait is over. Each request that sets the latch or counts down leaves a
 * row in holdfast_requests, so that a repeated request counts only once. Later
 * requests delete old rows.
 */
#include "latch.h"

#include "aside.h"
#include "clock.h"
#include "cmd.h"
#include "outcome.h"
#include "wire.h"

/* True if the name is in use as another kind of lock. */
#define IN_USE                                                                 \
    "(kind=1 and lease_until>" MY_NOW ") or (kind in(2,3) and exists(select "  \
    "1 from holdfast_holds h where h.name=l.name and h.lease_until>" MY_NOW    \
    "))"

/* ---- waiting ------------------------------------------------------------ */

void hf__my_latch_take(struct mysql *m)
{
    hf__my_sql(&m->cmd, "select if(kind=4,size,0),token," IN_USE
                        " from holdfast_locks l where name=%N");
}

int hf__my_latch_taken(struct mysql *m, struct hf__req *req,
                       const struct my_answer *a)
{
    struct my_lock *lock = req->remote->impl;
    const struct my_row *row = a->last->rows;
    const struct my_place place = {.left_us = UINT64_MAX / 2};
    uint64_t round;

    if (a->last->columns != 3)
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
        hf__my_refused(m, req, &place, a->now);
    }
    return 0;
}

/* ---- counting ----------------------------------------------------------- */

#define PUT_ANSWER                                                             \
    "select " MY_CLOCK ",(select answer from holdfast_requests where name=%N " \
    "and owner=%O and request=%R),(select if(kind=4,size,0) from "             \
    "holdfast_locks where name=%N),(select " IN_USE                            \
    " from holdfast_locks l where name=%N)"

/* Writes a row for the request, if the request is not void yet and the
 * condition that follows this text holds. The column `answer` is 0 until the
 * answer is known. */
#define PUT_REQUEST                                                            \
    "delete from holdfast_requests where name=%N and keep_until<" MY_NOW       \
    ";insert ignore into holdfast_requests(name,owner,request,answer,"         \
    "keep_until) select %N,%O,%R,0," MY_NOW                                    \
    "+interval %U microsecond from dual where " MY_CLOCK "<%E and "

/* True if the request is new. row_count() cannot show this: if the connection
 * is lost in the middle of the packet, the server still executes the rest of
 * the packet, but row_count() returns -1 in that rest. */
#define IS_NEW                                                                 \
    "exists(select 1 from holdfast_requests where name=%N and owner=%O and "   \
    "request=%R and answer=0)"

const char hf__my_latch_set[] =
    "start transaction;insert into holdfast_locks(name,kind,size,token,owner,"
    "hold,rings,fair,host,pid,label,since,lease_us,lease_until) values(%N,4,0,"
    "0,'',0,0,0,'',0,''," MY_NOW ",0," MY_PAST
    ") on duplicate key update size=size;"
    "select token into @t from holdfast_locks where name=%N;" PUT_REQUEST
    "1;delete from holdfast_holds where name=%N and lease_until<=" MY_NOW
    ";update holdfast_locks l set kind=4,size=%S,token=token+1,hold=0,"
    "lease_until=" MY_PAST " where name=%N and " IS_NEW
    " and not(kind=4 and size>0) and not(" IN_USE
    ");update holdfast_requests set answer=if((select token from "
    "holdfast_locks where name=%N)=@t,2,1) where name=%N and owner=%O and "
    "request=%R and answer=0;commit;" PUT_ANSWER;

const char hf__my_latch_down[] =
    "start transaction;set @s=0;select size into @s from holdfast_locks where "
    "name=%N and kind=4 for update;" PUT_REQUEST
    "@s>0;update holdfast_locks set size=size-1 where name=%N and kind=4 and "
    "size>0 and " IS_NEW ";update holdfast_requests set answer=1 where "
    "name=%N and owner=%O and request=%R;commit;" PUT_ANSWER;

const char hf__my_latch_get[] = PUT_ANSWER;

int hf__my_latch_counted(struct mysql *m, struct hf__query *q,
                         const struct my_answer *a)
{
    const struct my_row *row = a->last->rows;
    bool sets = q->req.op == HF__LATCH_SET, was_late;
    uint64_t left;

    if (a->last->columns != 4 || !row)
        return HF_EPROTO;
    hf__my_clock(m, hf__my_num(row, 0));
    left = hf__my_num(row, 2);
    /* The answer is NULL if the request was void when the server executed it,
     * or if a request to count down found a count of 0. */
    was_late = !row->value[1].text;
    if (hf__my_num(row, 1) != 1 && hf__my_num(row, 3))
        return m->core->why(m->client, HF_EMISMATCH,
                            "the name is in use as another kind of lock");
    if (q->req.op != HF__LATCH_GET && was_late && (sets || left))
        return hf__my_resend(m, &q->req);
    if (q->req.op == HF__LATCH_DOWN && !left)
        hf__my_ring_all(m, q);
    q->count = left;
    return sets && hf__my_num(row, 1) != 1 ? HF_EBUSY : HF__DONE;
}
