/*
 * Read-write locks and semaphores: rows of holders in a second table. A short
 * transaction, sent as one packet, locks the name's row first, so that there
 * are no deadlocks; what it found is in its last result.
 */
#include "share.h"

#include "aside.h"
#include "clock.h"
#include "name.h"
#include "outcome.h"
#include "turn.h"
#include "wire.h"

#include <string.h>

#define NOW "utc_timestamp(6)"
#define NAME r->name, (size_t)r->name_len
#define HOLD m->owner, MY_OWNER_LEN, req->hold_id

enum { GRANTED, IS_KIND, IS_FREE, LEFT, TOKEN, OVER, COLUMNS };

/* May it be had, beside @u permits and @w writers of others? */
static void share_put_rule(struct mysql *m, const struct hf__req *req)
{
    if (req->remote->kind == HF_SEMAPHORE)
        hf__my_sql(&m->cmd, "@u+%u<=@s", (uint64_t)req->permits);
    else
        hf__my_sql(&m->cmd, req->remote->mode == HF_WRITE ? "@u=0" : "@w=0");
}

void hf__my_share_take(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;
    bool writes = r->kind == HF_RWLOCK && r->mode == HF_WRITE;
    uint64_t us = req->lease_ms * 1000ULL, kind = r->kind;
    struct my_conn *c = &m->cmd;

    hf__my_put_turn(m, r->impl, false);
    hf__my_sql(c,
               "start transaction;insert into holdfast_locks(name,kind,size,"
               "token,owner,hold,rings,fair,host,pid,label,since,lease_us,"
               "lease_until) values(%x,%u,%u,0,'',0,0,%u,'',0,''," NOW
               ",0,'1970-01-02') on duplicate key update "
               "fair=if(kind=%u,%u,fair),since=if(kind=%u," NOW ",since);"
               "select kind,size,greatest(1,token) into @k,@s,@t from "
               "holdfast_locks where name=%x;",
               NAME, kind, (uint64_t)r->permits, (uint64_t)r->fair, kind,
               (uint64_t)r->fair, kind, NAME);
    hf__my_sql(c,
               "select ifnull(sum(is_ours and lives),0),"
               "ifnull(sum(if(is_ours,0,lives*permits)),0),"
               "ifnull(sum(if(is_ours,0,lives*mode)),0),"
               "min(if(lives,left_us,null)),"
               "ifnull(sum(not lives or is_odd),0) into @o,@u,@w,@l,@x from "
               "(select permits,mode,owner=%x and hold=%u is_ours,"
               "lease_until>" NOW " lives," MY_ODD
               " is_odd,timestampdiff(microsecond," NOW
               ",lease_until) left_us from holdfast_holds where name=%x lock "
               "in share mode) h;",
               HOLD, NAME);
    hf__my_sql(c,
               "insert into holdfast_holds(name,owner,hold,mode,permits,token,"
               "host,pid,label,since,lease_us,lease_until) select %x,%x,%u,%u,"
               "%u,@t+%u,%x,%u,%x," NOW ",%u," NOW
               "+interval %u microsecond from dual where @k=%u and @s=%u and "
               "(@o or (@b is not null and ",
               NAME, HOLD, (uint64_t)writes, (uint64_t)req->permits,
               (uint64_t)writes, m->host, strlen(m->host), m->pid, r->label,
               hf__my_label_len(r), us, us, (uint64_t)r->kind,
               (uint64_t)r->permits);
    share_put_rule(m, req);
    hf__my_sql(c,
               ")) on duplicate key update token=if(@o,token,@t+%u),"
               "since=if(@o,since," NOW "),asks=if(@o,asks,0),lease_us=%u,"
               "lease_until=" NOW "+interval %u microsecond;set @g=row_count();"
               "update holdfast_locks set token=@t+1 where name=%x and @g and "
               "not @o and %u;set @n=null;select token into @n from "
               "holdfast_holds where name=%x and owner=%x and hold=%u;commit;"
               "select @g,@k=%u and @s=%u,",
               (uint64_t)writes, us, us, NAME, (uint64_t)writes, NAME, HOLD,
               kind, (uint64_t)r->permits);
    share_put_rule(m, req);
    hf__my_sql(c, ",ifnull(@l,0),@n,@x");
}

void hf__my_share_drop(struct mysql *m, const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;
    const struct my_lock *lock = r->impl;

    hf__my_sql(&m->cmd,
               "delete from holdfast_holds where name=%x and owner=%x and "
               "hold=%u and lease_until>" NOW ";select is_used_lock('hfq:%h')",
               NAME, HOLD, lock->hash, MY_HASH_LEN);
}

/* Rows of leases that are over are of no concern to anybody. */
static void share_tidy(struct mysql *m, const struct hf__remote *r)
{
    hf__my_aside(
        m,
        "delete from holdfast_holds where name=%x and lease_until<=" NOW
        ";update holdfast_holds set lease_until=sysdate(6)+"
        "interval lease_us microsecond where name=%x and " MY_ODD,
        NAME, NAME);
}

int hf__my_share_taken(struct mysql *m, struct hf__req *req,
                       const struct my_result *last, hf__time now)
{
    const struct my_row *row = last->rows;
    struct my_place place = {0};

    if (last->columns != COLUMNS || !row)
        return HF_EPROTO;
    if (hf__my_num(row, OVER))
        share_tidy(m, req->remote);
    place.left_us = hf__my_num(row, LEFT);
    place.free = hf__my_num(row, IS_FREE);
    if (hf__my_num(row, GRANTED))
        hf__my_granted(m, req, hf__my_num(row, TOKEN));
    else if (hf__my_num(row, IS_KIND))
        hf__my_refused(m, req, &place, now);
    else
        hf__my_other_kind(m, req);
    return 0;
}
