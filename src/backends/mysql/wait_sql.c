#include "wait_sql.h"

#include "name.h"
#include "wait.h"

#include <string.h>

#define NOW "utc_timestamp(6)"
#define QUEUE_S 86400 /* then it queues again */
/* For how long the bell is waited for before the row is checked: until it
 * is known that the waiter is the first, and then. */
#define KNOW_S "1"
#define BELL_S "1.5" /* MySQL rounds it */

/* Who waits, for those who read the server's list of statements: query.c
 * reads it. */
void hf__my_wait_put_about(struct my_wait *w)
{
    const struct mysql *m = w->m;
    const struct hf__remote *r = w->lock->remote;

    hf__my_sql(&w->conn, "/*hf:%h %h %u %u %u %u %u %h. %h.*/ ", w->hash,
               MY_HASH_LEN, m->owner, MY_OWNER_LEN, w->lock->attempt_id, m->pid,
               (uint64_t)r->mode, (uint64_t)w->permits, w->since_us, m->host,
               strlen(m->host), r->label, hf__my_label_len(r));
}

/* 1: it has rung, or there is none; 2: it has not, for so long. */
void hf__my_wait_put_bell(struct my_wait *w)
{
    const char *s = w->state == MY_FIRST ? BELL_S : KNOW_S;

    if (w->rings)
        hf__my_sql(&w->conn,
                   "if(get_lock('hfb:%h',%s)=1,release_lock('hfb:%h'),2)",
                   w->hash, MY_HASH_LEN, w->skips_bell ? "0" : s, w->hash,
                   MY_HASH_LEN);
    else
        hf__my_sql(&w->conn, "1");
}

/* MY_SLEEP "seconds" MY_SLEPT: a wait, of 1.5 s at most, that KILL QUERY ends:
 * 1 then, else 0. It waits for the lock of the client, which cmd has; its
 * arguments are m->owner, MY_OWNER_LEN. Not SLEEP(): where KILL QUERY meets the
 * end of a SLEEP(), MariaDB takes 2 s for it, and keeps every other SLEEP() so
 * long. MySQL counts whole seconds. */
#define MY_SLEEP "ifnull(get_lock('hfc:%h',/*!50700 ceil(*/least(1.5,"
#define MY_SLEPT ")/*!50700 )*/),1)"

static void sql_put_shared_sleep(const struct mysql *m, struct my_conn *c,
                                 const struct hf__remote *r, uint32_t permits)
{
    if (r->kind == HF_SEMAPHORE)
        hf__my_sql(c, "select if(used+%u<=%u", (uint64_t)permits,
                   (uint64_t)r->permits);
    else
        hf__my_sql(c, "select if(%s=0",
                   r->mode == HF_WRITE ? "used" : "writers");
    hf__my_sql(c,
               ",1," MY_SLEEP "left_us/1000000" MY_SLEPT ") from (select "
               "ifnull(sum(permits),0) used,ifnull(sum(mode),0) writers,"
               "min(timestampdiff(microsecond," NOW
               ",lease_until)) left_us from holdfast_holds where name=%x and "
               "lease_until>" NOW ") h",
               m->owner, MY_OWNER_LEN, r->name, (size_t)r->name_len);
}

/* 1: an attempt is worthwhile; else it waits until that is likely, and says 0.
 * One statement: what is released after it was begun ends its wait by KILL
 * QUERY, and what was released before it finds. No row: everything has changed.
 */
void hf__my_wait_put_sleep(struct my_wait *w)
{
    const struct hf__remote *r = w->lock->remote;
    const struct mysql *m = w->m;
    struct my_conn *c = &w->conn;

    if (r->kind == HF_LATCH)
        hf__my_sql(c,
                   "select if(size=0 or token<>%u,1," MY_SLEEP "2" MY_SLEPT
                   ") from holdfast_locks where name=%x and kind=4",
                   w->lock->round, m->owner, MY_OWNER_LEN, r->name,
                   (size_t)r->name_len);
    else if (r->kind == HF_MUTEX)
        hf__my_sql(c,
                   "select if(lease_until<=utc_timestamp(6),1," MY_SLEEP
                   "timestampdiff(microsecond,utc_timestamp(6),lease_until)/"
                   "1000000" MY_SLEPT ") from holdfast_locks where name=%x and "
                   "kind=1",
                   m->owner, MY_OWNER_LEN, r->name, (size_t)r->name_len);
    else
        sql_put_shared_sleep(m, c, r, w->permits);
}

void hf__my_wait_put_queue(struct my_wait *w)
{
    hf__my_sql(&w->conn,
               "select if(if(is_used_lock('hfq:%h')<=>connection_id(),1,"
               "get_lock('hfq:%h',%u))=1,",
               w->hash, MY_HASH_LEN, w->hash, MY_HASH_LEN, (uint64_t)QUEUE_S);
    hf__my_wait_put_bell(w);
    hf__my_sql(&w->conn, ",0)");
}

void hf__my_wait_put_turn(struct my_wait *w)
{
    uint32_t s = w->lock->remote->fair ? MY_FAIR_TURN_S : MY_TURN_S;

    if (w->turn_s != s)
        hf__my_sql(&w->conn, "set session wait_timeout=%u;", (uint64_t)s);
    w->turn_s = s;
}
