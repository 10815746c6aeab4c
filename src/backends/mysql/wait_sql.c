#include "wait_sql.h"

#include "clock.h"
#include "name.h"

#include <string.h>

#define MY_TURN_S 1
/* The limit of GET_LOCK for the queue, in s. After that the connection queues
 * again. */
#define QUEUE_S 86400
/* How long to wait for the bell before the row is checked, in s: KNOW_S if the
 * client does not know yet that it is the first, else BELL_S. */
#define KNOW_S "1"
#define BELL_S "1.5" /* MySQL rounds it */

/* Writes an expression that yields 1 if the bell rang, or if there is none; 2
 * if it did not ring in time. */
static void sql_put_bell(struct my_wait *w)
{
    const char *s = w->skips_bell          ? "0"
                    : w->state == MY_FIRST ? BELL_S
                                           : KNOW_S;

    if (w->rings)
        hf__my_sql(&w->conn,
                   "if(get_lock('hfb:%Q',%s)=1,release_lock('hfb:%Q'),2)", s);
    else
        hf__my_sql(&w->conn, "1");
}

/* The expression SLEEP "seconds" SLEPT waits for at most 1.5 s (2 s on MySQL,
 * where GET_LOCK counts whole seconds). It yields 1 if KILL QUERY ends the
 * wait, else 0. It waits for the user lock of the client, which cmd owns. It
 * does not use the function SLEEP(): if KILL QUERY arrives at the end of a
 * SLEEP(), MariaDB takes 2 s for it, during which every other SLEEP() is
 * delayed. */
#define SLEEP "ifnull(get_lock('hfc:%C',/*!50700 ceil(*/least(1.5,"
#define SLEPT ")/*!50700 )*/),1)"
#define SHARED(is_free)                                                        \
    "select if(" is_free ",1," SLEEP "left_us/1000000" SLEPT ") from (select " \
    "ifnull(sum(permits),0) used,ifnull(sum(mode),0) writers,"                 \
    "min(timestampdiff(microsecond," MY_NOW ",lease_until)) left_us from "     \
    "holdfast_holds where name=%N and lease_until>" MY_NOW ") h"

/* Returns the statement of a sleep. Check and sleep must be one statement, so
 * that no release is missed. The check sees a release that came before the
 * statement began; a later release ends the sleep by KILL QUERY. */
static const char *sql_sleep(const struct hf__remote *r)
{
    switch (r->kind) {
    case HF_LATCH:
        return "select if(size=0 or token<>%G,1," SLEEP "2" SLEPT
               ") from holdfast_locks where name=%N and kind=4";
    case HF_MUTEX:
        return "select if(lease_until<=" MY_NOW ",1," SLEEP
               "timestampdiff(microsecond," MY_NOW ",lease_until)/1000000" SLEPT
               ") from holdfast_locks where "
               "name=%N and kind=1";
    case HF_SEMAPHORE:
        return SHARED("used+%M<=%S");
    default:
        return r->mode == HF_WRITE ? SHARED("used=0") : SHARED("writers=0");
    }
}

void hf__my_wait_put(struct my_wait *w, enum my_wait_state state)
{
    const struct hf__remote *r = w->lock->remote;
    uint32_t turn_s = r->fair ? MY_FAIR_TURN_S : MY_TURN_S;
    struct my_conn *c = &w->conn;

    hf__my_bind_lock(w->m, c, w->lock);
    /* The letters that name.h does not bind: %M is the number of permits, %G
     * the token of a latch when the wait began. */
    hf__my_bind_number(c, 'M', w->permits);
    hf__my_bind_number(c, 'G', w->lock->round);
    if (w->turn_s != turn_s)
        hf__my_sql(c, "set session wait_timeout=%u;", (uint64_t)turn_s);
    w->turn_s = turn_s;
    /* query.c finds this comment in the server's list of statements. */
    hf__my_sql(c, "/*hf:%Q %C %u %P %u %M %u %h. %h.*/ ", w->lock->attempt_id,
               (uint64_t)r->mode, w->since_us, w->m->host, strlen(w->m->host),
               r->label, hf__my_label_len(r));
    if (state == MY_SLEEPS) {
        hf__my_sql(c, sql_sleep(r));
        return;
    }
    if (state == MY_QUEUES)
        hf__my_sql(c,
                   "select if(if(is_used_lock('hfq:%Q')<=>connection_id(),1,"
                   "get_lock('hfq:%Q',%u))=1,",
                   (uint64_t)QUEUE_S);
    else
        hf__my_sql(c, "select ");
    sql_put_bell(w);
    hf__my_sql(c, state == MY_QUEUES ? ",0)" : "");
}
