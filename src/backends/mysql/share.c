/*
 * Read-write locks and semaphores. An attempt is a short transaction, sent as
 * one packet. It locks the row of the name first, which prevents deadlocks. The
 * last result of the packet shows what the attempt found.
 */
#include "share.h"

#include "aside.h"
#include "clock.h"
#include "outcome.h"
#include "wire.h"

#define NAME r->name, (size_t)r->name_len

enum { GRANTED, IS_KIND, IS_FREE, LEFT, TOKEN, OVER, COLUMNS };

/* Returns the SQL condition for a grant. In it, @u is the number of permits in
 * the holds of others, and @w the number of writers among these holds. */
static const char *share_rule(const struct hf__remote *r)
{
    return r->kind == HF_SEMAPHORE ? "@u+%M<=@s"
           : r->mode == HF_WRITE   ? "@u=0"
                                   : "@w=0";
}

void hf__my_share_take(struct mysql *m, const struct hf__req *req)
{
    const char *rule = share_rule(req->remote);
    struct my_conn *c = &m->cmd;

    hf__my_put_turn(m, req->remote->impl, false);
    hf__my_sql(
        c,
        "start transaction;insert into holdfast_locks(name,kind,size,token,"
        "owner,hold,rings,fair,host,pid,label,since,lease_us,lease_until) "
        "values(%N,%K,%S,0,'',0,0,%F,'',0,''," MY_NOW ",0," MY_PAST
        ") on duplicate key update "
        "fair=if(kind=%K,%F,fair),since=if(kind=%K," MY_NOW ",since);"
        "select kind,size,greatest(1,token) into @k,@s,@t from holdfast_locks "
        "where name=%N;"
        "select ifnull(sum(is_ours and lives),0),"
        "ifnull(sum(if(is_ours,0,lives*permits)),0),"
        "ifnull(sum(if(is_ours,0,lives*mode)),0),min(if(lives,left_us,null)),"
        "ifnull(sum(not lives or is_odd),0) into @o,@u,@w,@l,@x from (select "
        "permits,mode,owner=%O and hold=%H is_ours,lease_until>" MY_NOW
        " lives," MY_ODD " is_odd,timestampdiff(microsecond," MY_NOW
        ",lease_until) left_us from holdfast_holds where name=%N lock in share "
        "mode) h;"
        "insert into holdfast_holds(name,owner,hold,mode,permits,token,host,"
        "pid,label,since,lease_us,lease_until) select %N,%O,%H,%W,%M,@t+%W,%A,"
        "%P,%B," MY_NOW ",%L," MY_NOW
        "+interval %L microsecond from dual where "
        "@k=%K and @s=%S and (@o or (@b is not null and ");
    hf__my_sql(c, rule);
    hf__my_sql(
        c,
        ")) on duplicate key update "
        "token=if(@o,token,@t+%W),since=if(@o,since," MY_NOW
        "),asks=if(@o,asks,0),lease_us=%L,lease_until=" MY_NOW
        "+interval %L microsecond;set @g=row_count();"
        "update holdfast_locks set token=@t+1 where name=%N and @g and not @o "
        "and %W;set @n=null;select token into @n from holdfast_holds where "
        "name=%N and owner=%O and hold=%H;commit;select @g,@k=%K and @s=%S,");
    hf__my_sql(c, rule);
    hf__my_sql(c, ",ifnull(@l,0),@n,@x");
}

void hf__my_share_drop(struct mysql *m)
{
    hf__my_sql(&m->cmd, "delete from holdfast_holds where name=%N and owner=%O "
                        "and hold=%H and lease_until>" MY_NOW
                        ";select is_used_lock('hfq:%Q')");
}

/* Deletes expired holds, and shortens the rows for which MY_ODD is true: their
 * lease_until is too far in the future. */
static void share_tidy(struct mysql *m, const struct hf__remote *r)
{
    hf__my_aside(
        m,
        "delete from holdfast_holds where name=%x and lease_until<=" MY_NOW
        ";update holdfast_holds set lease_until=sysdate(6)+"
        "interval lease_us microsecond where name=%x and " MY_ODD,
        NAME, NAME);
}

int hf__my_share_taken(struct mysql *m, struct hf__req *req,
                       const struct my_answer *a)
{
    const struct my_row *row = a->last->rows;
    struct my_place place = {0};

    if (a->last->columns != COLUMNS || !row)
        return HF_EPROTO;
    if (hf__my_num(row, OVER))
        share_tidy(m, req->remote);
    place.left_us = hf__my_num(row, LEFT);
    place.free = hf__my_num(row, IS_FREE);
    if (hf__my_num(row, GRANTED))
        hf__my_granted(m, req, hf__my_num(row, TOKEN));
    else if (hf__my_num(row, IS_KIND))
        hf__my_refused(m, req, &place, a->now);
    else
        hf__my_other_kind(m, req);
    return 0;
}
