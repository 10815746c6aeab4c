/* clang-format off */
/*
 * The mutex: one row of holdfast_locks, which is free if lease_until is in the
 * past.
 *
 * An attempt sends one of three packets (enum my_step). It first assumes that
 * the row exists and is free (UPDATE). If that is wrong, it finds out what is
 * in the way (SELECT). If the row does not exist, or the hold may already be
 * ours, it uses the statement that is correct in every case (UPSERT). The
 * attempt begins with SELECT if the lock waits but is not the first of the
 * queue, or if it does not wait yet but had to wait for its last grant. The row
 * of a released mutex is kept: it contains the token, and deleting rows causes
 * deadlocks.
 *
 * The statements below are those that are sent for a fair mutex. :owner and
 * :hold identify the hold, :waiter is the connection id of the connection that
 * waits for the lock, or 0, and <hash> is the hash of the name. unit-mysql-sql
 * compares these statements with those that the code sends, and tests which
 * statement or outcome follows an answer.
 *
 * The packets of UPDATE and UPSERT begin with a statement that checks whose
 * turn it is and takes the bell (outcome.c):
 *
 *     set @b=if(is_used_lock('hfb:<hash>')<=>connection_id(),1,
 *               if(ifnull(is_used_lock('hfq:<hash>'),:waiter)=:waiter,
 *                  get_lock('hfb:<hash>',0),null));
 *
 *     @b    means                                     then
 *     1     cmd owns the bell                         may be granted
 *     0     another connection owns the bell, such    may be granted; rings=0:
 *           as the first of the queue                   the release wakes by
 *                                                       KILL QUERY
 *     NULL  others go first                           nothing is granted
 *
 *   For an attempt that need not queue, get_lock() takes the place of the
 *   inner `if`. (The lock is unfair, polls, is the first of the queue, or was
 *   found free 3 s ago.) If all locks of the client poll, the statement is:
 *   set @b=0;
 *
 * UPDATE (MY_STEP_UPDATE):
 *
 *     update holdfast_locks
 *     set token=last_insert_id(token+1),
 *         owner=:owner,hold=:hold,rings=@b,fair=1,
 *         host=:host,pid=:pid,label=:label,asks=0,
 *         since=utc_timestamp(6),lease_us=:lease_us,
 *         lease_until=utc_timestamp(6)+interval :lease_us microsecond
 *     where name=:name and kind=1 and lease_until<=utc_timestamp(6)
 *       and @b is not null
 *
 *     answer (OK packet)    means                     then
 *     affected rows is 1    it was free and is now    granted: the insert id is
 *                             ours                      the token
 *     affected rows is 0    no row, not free, of      SELECT
 *                             another kind, or not
 *                             our turn
 *
 * SELECT (MY_STEP_SELECT), which takes no lock on the row:
 *
 *     select kind=1,
 *            owner=:owner and hold=:hold and lease_until>utc_timestamp(6),
 *            lease_until<=utc_timestamp(6),
 *            rings,
 *            (@@session.time_zone='+00:00' and
 *             lease_until>sysdate(6)+interval lease_us+10000000 microsecond),
 *            greatest(0,timestampdiff(microsecond,utc_timestamp(6),
 *                                     lease_until)),
 *            ifnull(is_used_lock('hfq:<hash>'),:waiter)=:waiter,
 *            is_used_lock('hfb:<hash>')<=>connection_id()
 *     from holdfast_locks where name=:name
 *
 *     column       means                           then
 *     (no row)     the name was never used         UPSERT
 *     IS_MUTEX     the name is a mutex             0: it is converted if it is
 *                                                    unused (outcome.c)
 *     IS_OURS_NOW  an earlier packet was granted   1: UPSERT, which renews and
 *                                                    returns the token
 *     IS_OVER      it is free                      1: UPDATE, if TURN or the
 *                                                    attempt need not queue;
 *                                                    else refused: others go
 *                                                    first
 *     RINGS        the holder owns the bell        the first waiter waits for
 *                                                    the bell (0: it sleeps)
 *     IS_ODD       the lease was made before the   1: UPSERT, which shortens it
 *                    server's clock was set back
 *     LEFT_US      until the lease ends            the first waiter attempts
 *                                                    then, if RINGS
 *     TURN         the queue is empty, or ours     see IS_OVER
 *     HAVE         cmd owns the bell, so the       RINGS counts as 0; if
 *                    holder does not                 refused, the bell is
 *                                                    given back
 *
 *   The row may become free and be taken again between SELECT and UPDATE. If
 *   UPDATE has followed SELECT more than MY_TRIES times, UPSERT follows.
 *
 * UPSERT (MY_STEP_UPSERT). Assignments are executed from left to right: after
 * the first two, `owner` and `hold` show whether the hold is ours; lease_until
 * comes last, because the others read it. 4611686018427387904 is 1 << 62:
 * insert ids from this number on are not tokens.
 *
 *     insert into holdfast_locks(name,kind,size,token,owner,hold,rings,fair,
 *                                host,pid,label,since,lease_us,lease_until)
 *     values(:name,1,0,
 *            if(@b is null,0*last_insert_id(4611686018427387904+8),
 *               last_insert_id(1)),
 *            :owner,if(@b is null,0,:hold),ifnull(@b,0),1,
 *            :host,:pid,:label,utc_timestamp(6),:lease_us,
 *            if(@b is null,'1970-01-02',
 *               utc_timestamp(6)+interval :lease_us microsecond))
 *     on duplicate key update
 *     hold=if(kind=1 and lease_until<=utc_timestamp(6),
 *             if(@b is null,0,:hold),hold),
 *     owner=if(kind=1 and hold=:hold and lease_until<=utc_timestamp(6),
 *              :owner,owner),
 *     token=if(kind=1 and hold=:hold and owner=:owner,
 *              last_insert_id(token+(lease_until<=utc_timestamp(6))),
 *              token+0*last_insert_id(4611686018427387904
 *                +rings+2*ifnull(@b,0)+4*(kind<>1)
 *                +8*(lease_until<=utc_timestamp(6))
 *                +16*greatest(0,timestampdiff(microsecond,utc_timestamp(6),
 *                                             lease_until)))),
 *     rings=if(hold=:hold and owner=:owner and kind=1,ifnull(@b,0),rings),
 *     fair=if(hold=:hold and owner=:owner and kind=1,1,fair),
 *     host=if(hold=:hold and owner=:owner and kind=1,:host,host),
 *     pid=if(hold=:hold and owner=:owner and kind=1,:pid,pid),
 *     label=if(hold=:hold and owner=:owner and kind=1,:label,label),
 *     asks=if(lease_until<=utc_timestamp(6),0,asks),
 *     since=if(hold=:hold and owner=:owner and kind=1,
 *              if(lease_until<=utc_timestamp(6),utc_timestamp(6),since),since),
 *     lease_us=if(hold=:hold and owner=:owner and kind=1,:lease_us,lease_us),
 *     lease_until=if(hold=:hold and owner=:owner and kind=1,
 *       utc_timestamp(6)+interval :lease_us microsecond,
 *       if((@@session.time_zone='+00:00' and
 *           lease_until>sysdate(6)+interval lease_us+10000000 microsecond),
 *          sysdate(6)+interval lease_us microsecond,lease_until))
 *
 *     insert id (OK packet)  means                    then
 *     below 1 << 62          it is ours               granted: it is the token
 *     from 1 << 62 on        it is not                refused; its bits mean:
 *       HOLDER_RINGS           as RINGS                 as RINGS
 *       HAVE_BELL              as HAVE                  as HAVE
 *       OTHER_KIND             as not IS_MUTEX          as not IS_MUTEX
 *       IS_FREE                free, or there was no    others go first
 *                                row, but @b is NULL
 *       the rest, >> 4         as LEFT_US               as LEFT_US
 *
 * "Refused" means hf__my_refused(): the attempt waits, polls, naps or is BUSY.
 *
 * A lease that ends later than its own length plus 10 s from now (MY_ODD) is
 * treated as if it began now. The comparison uses sysdate(), the time at which
 * the row is read: utc_timestamp() is the time at which the statement began,
 * and a holder may have renewed the lease since then.
 */
/* clang-format on */
#include "mutex.h"

#include "aside.h"
#include "clock.h"
#include "cmd.h"
#include "outcome.h"
#include "wire.h"

/* Insert ids from this value on are not tokens. */
#define REFUSED "4611686018427387904"
#define REFUSED_FROM (1ULL << 62)
/* The bits of such an insert id. */
enum {
    HOLDER_RINGS = 1, /* the holder owns the bell */
    HAVE_BELL = 2,    /* cmd owns the bell, although the attempt was refused */
    OTHER_KIND = 4,
    IS_FREE = 8,    /* the lock is free, but others go first */
    LEFT_SHIFT = 4, /* the bits above: us until the lease ends */
};

/* ---- statements --------------------------------------------------------- */

#define MY_OURS "if(hold=%H and owner=%O and kind=1,"

/* The statements, by enum my_step. name.h and cmd.h explain the letters. */
static const char *const statements[] = {
    /* For the usual case that the row exists and is free. The UPDATE costs half
     * as much as an INSERT that finds a row. */
    [MY_STEP_UPDATE] =
        "update holdfast_locks set token=last_insert_id(token+1),"
        "owner=%O,hold=%H,rings=@b,fair=%F,host=%A,pid=%P,label=%B,asks=0,"
        "since=" MY_NOW ",lease_us=%L,lease_until=" MY_NOW
        "+interval %L microsecond where name=%N and kind=1 and "
        "lease_until<=" MY_NOW " and @b is not null",
    /* This takes no lock on the row. */
    [MY_STEP_SELECT] =
        "select kind=1,owner=%O and hold=%H and lease_until>" MY_NOW
        ",lease_until<=" MY_NOW ",rings," MY_ODD
        ",greatest(0,timestampdiff(microsecond," MY_NOW
        ",lease_until))," MY_OUR_TURN "," MY_HAVE_BELL
        " from holdfast_locks where name=%N",
    [MY_STEP_UPSERT] =
        "insert into holdfast_locks(name,kind,size,token,owner,hold,rings,fair,"
        "host,pid,label,since,lease_us,lease_until) values(%N,1,0,"
        "if(@b is null,0*last_insert_id(" REFUSED "+8),last_insert_id(1)),"
        "%O,if(@b is null,0,%H),ifnull(@b,0),%F,%A,%P,%B," MY_NOW ",%L,"
        "if(@b is null," MY_PAST "," MY_NOW "+interval %L microsecond)) "
        "on duplicate key update "
        "hold=if(kind=1 and lease_until<=" MY_NOW ",if(@b is null,0,%H),hold),"
        "owner=if(kind=1 and hold=%H and lease_until<=" MY_NOW ",%O,owner),"
        "token=if(kind=1 and hold=%H and owner=%O,"
        "last_insert_id(token+(lease_until<=" MY_NOW ")),"
        "token+0*last_insert_id(" REFUSED
        "+rings+2*ifnull(@b,0)+4*(kind<>1)+8*(lease_until<=" MY_NOW
        ")+16*greatest(0,timestampdiff(microsecond," MY_NOW ",lease_until)))),"
        "rings=" MY_OURS "ifnull(@b,0),rings),fair=" MY_OURS "%F,fair),"
        "host=" MY_OURS "%A,host),pid=" MY_OURS "%P,pid),"
        "label=" MY_OURS "%B,label),asks=if(lease_until<=" MY_NOW ",0,asks),"
        "since=" MY_OURS "if(lease_until<=" MY_NOW "," MY_NOW
        ",since),since),lease_us=" MY_OURS "%L,lease_us),"
        "lease_until=" MY_OURS MY_NOW "+interval %L microsecond,if(" MY_ODD
        ",sysdate(6)+interval lease_us microsecond,lease_until))",
};

enum {
    IS_MUTEX,
    IS_OURS_NOW,
    IS_OVER,
    RINGS,
    IS_ODD,
    LEFT_US,
    TURN,
    HAVE,
    SELECT_COLUMNS
};

void hf__my_mutex_take(struct mysql *m, const struct hf__req *req)
{
    const struct my_lock *lock = req->remote->impl;

    if (lock->step != MY_STEP_SELECT)
        hf__my_put_turn(m, lock, true);
    hf__my_sql(&m->cmd, statements[lock->step]);
}

/* The bell is released after the UPDATE, so that the waiter that the bell wakes
 * finds the row free. If cmd does not own the bell, the second statement
 * returns the connection id of the first waiter, which the client then wakes by
 * KILL QUERY. */
void hf__my_mutex_drop(struct mysql *m, const struct hf__req *req)
{
    const struct my_lock *lock = req->remote->impl;

    hf__my_sql(&m->cmd, "update holdfast_locks set lease_until=" MY_PAST
                        " where name=%N and kind=1 and owner=%O and hold=%H "
                        "and lease_until>" MY_NOW);
    if (lock->attempt_id == req->hold_id) /* after a later attempt the bell
                                             belongs to that attempt */
        hf__my_sql(&m->cmd, ";select if(release_lock('hfb:%Q')=1,0,"
                            "is_used_lock('hfq:%Q'))");
}

/* ---- answers ------------------------------------------------------------ */

static int mutex_step_on(struct mysql *m, struct hf__req *req,
                         enum my_step step)
{
    ((struct my_lock *)req->remote->impl)->step = step;
    hf__my_attempt_again(m, req);
    return 0;
}

static int mutex_selected(struct mysql *m, struct hf__req *req,
                          const struct my_answer *a)
{
    struct my_lock *lock = req->remote->impl;
    const struct my_row *row = a->last->rows;
    struct my_place place;

    if (a->last->columns != SELECT_COLUMNS)
        return HF_EPROTO;
    if (!row)
        return mutex_step_on(m, req, MY_STEP_UPSERT);
    place = (struct my_place){.left_us = hf__my_num(row, LEFT_US),
                              .free = hf__my_num(row, IS_OVER),
                              .rings = hf__my_num(row, RINGS) &&
                                       !hf__my_num(row, HAVE)};
    if (hf__my_num(row, IS_OURS_NOW) || hf__my_num(row, IS_ODD) ||
        lock->tries > MY_TRIES)
        return mutex_step_on(m, req, MY_STEP_UPSERT);
    if (hf__my_num(row, IS_MUTEX) && place.free &&
        (hf__my_num(row, TURN) || !hf__my_must_queue(m, lock))) {
        lock->tries++;
        return mutex_step_on(m, req, MY_STEP_UPDATE);
    }
    if (hf__my_num(row, HAVE))
        hf__my_bell_give_back(m, lock);
    if (hf__my_num(row, IS_MUTEX))
        hf__my_refused(m, req, &place, a->now);
    else
        hf__my_other_kind(m, req);
    return 0;
}

int hf__my_mutex_taken(struct mysql *m, struct hf__req *req,
                       const struct my_answer *a)
{
    struct my_lock *lock = req->remote->impl;
    const struct my_result *last = a->last;
    uint64_t id = last->insert_id, bits = id - REFUSED_FROM;
    struct my_place place = {.left_us = bits >> LEFT_SHIFT,
                             .free = bits & IS_FREE,
                             .rings =
                                 (bits & HOLDER_RINGS) && !(bits & HAVE_BELL)};

    if (lock->step == MY_STEP_SELECT)
        return mutex_selected(m, req, a);
    if (lock->step == MY_STEP_UPDATE && !last->columns && !last->affected)
        return mutex_step_on(m, req, MY_STEP_SELECT);
    if (last->columns || !id)
        return HF_EPROTO;
    if (id < REFUSED_FROM) {
        hf__my_granted(m, req, id);
        return 0;
    }
    if (bits & HAVE_BELL)
        hf__my_bell_give_back(m, lock);
    if (bits & OTHER_KIND)
        hf__my_other_kind(m, req);
    else
        hf__my_refused(m, req, &place, a->now);
    return 0;
}
