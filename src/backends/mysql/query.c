#include "query.h"

#include "aside.h"
#include "backends/common/about.h"
#include "clock.h"
#include "cmd.h"
#include "diagnose.h"
#include "latch.h"
#include "name.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_ROWS 1000

/* Copies to the lock that replaces this one after a downgrade how many asks
 * were already reported, so that they are not reported again. */
static void query_go_along(const struct my_lock *lock, struct my_lock *into)
{
    into->reported_id = lock->reported_id;
    into->reported = lock->reported;
}

int hf__my_query(void *self, struct hf__query *q)
{
    struct mysql *m = self;

    if (q->name_len > HF_NAME_MAX)
        return m->core->why(m->client, HF_EINVAL,
                            "the key must have at most %d bytes", HF_NAME_MAX);
    if (q->req.op == HF__LISTEN)
        return HF_ENOTSUP;
    if (q->req.op == HF__DOWNGRADE && q->line)
        query_go_along(q->line->impl, q->into->impl);
    return hf__my_submit(m, &q->req);
}

/* ---- inspect ------------------------------------------------------------ */

#define SINCE "timestampdiff(microsecond,'1970-01-01',since) div 1000"
#define LEFT                                                                   \
    "timestampdiff(microsecond," MY_NOW ",if(" MY_ODD                          \
    ",sysdate(6)+interval lease_us microsecond,lease_until)) "                 \
    "div 1000"

enum {
    OWNER,
    HOLD_ID,
    HOST,
    PID,
    LABEL,
    SINCE_MS,
    LEFT_MS,
    TOKEN,
    MODE,
    PERMITS,
    PARTY
};

static const char inspect[] =
    "select kind,size,token,fair from holdfast_locks where name=%N;"
    "select lower(hex(owner)),hold,host,pid,label," SINCE "," LEFT
    ",token,1,1 from holdfast_locks where name=%N and kind=1 and "
    "lease_until>" MY_NOW ";"
    "select lower(hex(owner)),hold,host,pid,label," SINCE "," LEFT
    ",token,mode,permits from holdfast_holds where name=%N and "
    "lease_until>" MY_NOW " order by since;"
    "select info from information_schema.processlist where "
    "info like '/*hf:%Q %%'";

static void query_copy(char *to, size_t size, const struct my_value *v)
{
    hf__copy_text(to, size, v->text ? v->text : "", v->len);
}

static int query_add_holders(struct mysql *m, struct hf__query *q,
                             const struct my_result *r)
{
    if (r->columns != PARTY)
        return HF_EPROTO;
    for (const struct my_row *row = r->rows; row; row = row->next) {
        hf_party *p = m->core->add_party(m->client, q, true);
        const char *owner = row->value[OWNER].text;

        if (!p)
            return HF_ENOMEM;
        snprintf(p->owner, sizeof(p->owner), "%.32s:%llu", owner ? owner : "",
                 (unsigned long long)hf__my_num(row, HOLD_ID));
        query_copy(p->host, sizeof(p->host), &row->value[HOST]);
        query_copy(p->label, sizeof(p->label), &row->value[LABEL]);
        p->pid = (int64_t)hf__my_num(row, PID);
        p->since_unix_ms = (int64_t)hf__my_num(row, SINCE_MS);
        p->left_ms = (int64_t)hf__my_num(row, LEFT_MS);
        p->token = hf__my_num(row, TOKEN);
        p->mode = hf__my_num(row, MODE) ? HF_WRITE : HF_READ;
        p->permits = q->info->kind == HF_SEMAPHORE
                         ? (uint32_t)hf__my_num(row, PERMITS)
                         : 0;
    }
    return 0;
}

static void query_unhex(char *to, size_t size, const char *hex, size_t len)
{
    char bytes[256];
    size_t n = 0;

    for (; n < sizeof(bytes) && 2 * n + 1 < len; n++) {
        char two[3] = {hex[2 * n], hex[2 * n + 1], '\0'};

        bytes[n] = (char)strtoul(two, NULL, 16);
    }
    hf__copy_text(to, size, bytes, n);
}

/* Reads the comment that wait_sql.c writes before its statement. */
static int query_add_waiter(struct mysql *m, struct hf__query *q,
                            const char *text)
{
    unsigned long long hold = 0;
    const char *end = text + strlen(text), *part;
    hf_party *p = m->core->add_party(m->client, q, false);
    unsigned mode = 0, permits = 0;
    char owner[33] = "";
    long long pid = 0, since_us = 0;
    int used = (int)(end - text);
    size_t len;

    if (!p)
        return HF_ENOMEM;
    sscanf(text, "%*s %32s %llu %lld %u %u %lld %n", owner, &hold, &pid, &mode,
           &permits, &since_us, &used);
    snprintf(p->owner, sizeof(p->owner), "%s:%llu", owner, hold);
    p->pid = pid;
    p->mode = mode == HF_WRITE ? HF_WRITE : HF_READ;
    p->permits = q->info->kind == HF_SEMAPHORE ? permits : 0;
    p->since_unix_ms = since_us / 1000;
    p->left_ms = -1;
    text += used;
    part = hf__cut(&text, end, '.', &len);
    query_unhex(p->host, sizeof(p->host), part, len);
    text += *text == ' ';
    part = hf__cut(&text, end, '.', &len);
    query_unhex(p->label, sizeof(p->label), part, len);
    return 0;
}

static int query_earlier(const void *a, const void *b)
{
    int64_t x = ((const hf_party *)a)->since_unix_ms;
    int64_t y = ((const hf_party *)b)->since_unix_ms;

    return (x > y) - (x < y);
}

/* Returns whether both are the same waiter. A client counts as only one waiter
 * of a mutex, even with different hold ids. */
static bool query_is_same_waiter(const hf_info *info, const hf_party *a,
                                 const hf_party *b)
{
    return info->kind == HF_MUTEX
               ? strncmp(a->owner, b->owner, 2 * MY_OWNER_LEN) == 0
               : strcmp(a->owner, b->owner) == 0;
}

/* Removes the earlier entry of a waiter that is listed twice. A waiter may be
 * listed twice just after it has begun its next statement. */
static void query_drop_doubles(hf_info *info)
{
    size_t kept = 0;

    for (size_t i = 0; i < info->waiters_len; i++) {
        size_t j = i + 1;

        while (
            j < info->waiters_len &&
            !query_is_same_waiter(info, &info->waiters[i], &info->waiters[j]))
            j++;
        if (j == info->waiters_len)
            info->waiters[kept++] = info->waiters[i];
    }
    info->waiters_len = kept;
}

static int query_add_waiters(struct mysql *m, struct hf__query *q,
                             const struct my_result *r)
{
    int rc = 0;

    for (const struct my_row *row = r->rows; row && !rc; row = row->next)
        if (row->value[0].text)
            rc = query_add_waiter(m, q, row->value[0].text);
    if (q->info->waiters_len > 1)
        qsort(q->info->waiters, q->info->waiters_len, sizeof(hf_party),
              query_earlier);
    query_drop_doubles(q->info);
    return rc;
}

static int query_inspected(struct mysql *m, struct hf__query *q,
                           const struct my_answer *a)
{
    const struct my_result *mutex = hf__my_at(a->first, 1);
    const struct my_result *holds = hf__my_at(a->first, 2);
    const struct my_result *waiters = hf__my_at(a->first, 3);
    const struct my_row *row = a->first->rows;
    uint64_t kind = hf__my_num(row, 0);
    int rc;

    if (!waiters || a->first->columns != 4 || waiters->columns != 1)
        return HF_EPROTO;
    q->info->kind = kind <= HF_LATCH ? (enum hf_kind)kind : 0;
    q->info->token = kind != HF_LATCH ? hf__my_num(row, 2) : 0;
    rc = query_add_holders(m, q, mutex);
    if (!rc)
        rc = query_add_holders(m, q, holds);
    if (!rc && kind != HF_LATCH && !m->polls)
        rc = query_add_waiters(m, q, waiters);
    q->info->waiters_unknown = m->polls != NULL || kind == HF_LATCH;
    q->info->fairness = hf__my_num(row, 3) ? HF_FAIR : HF_UNFAIR;
    if (kind == HF_LATCH)
        q->info->count = hf__my_num(row, 1);
    if (kind == HF_SEMAPHORE)
        q->info->permits = (uint32_t)hf__my_num(row, 1);
    if (!q->info->holders_len && !q->info->waiters_len && !q->info->count)
        q->info->kind = 0; /* the name is unused */
    return rc;
}

/* ---- list --------------------------------------------------------------- */

/* Writes the first name after all names that begin with the prefix. Returns
 * false if there is no such name. */
static bool query_behind(const struct hf__query *q, char to[HF_NAME_MAX],
                         size_t *len)
{
    memcpy(to, q->name, q->name_len);
    for (*len = q->name_len; *len; (*len)--)
        if ((unsigned char)to[*len - 1] != 0xff) {
            to[*len - 1]++;
            return true;
        }
    return false;
}

static void query_put_list(struct mysql *m, const struct hf__query *q)
{
    static const char *const parts[] = {
        "select name from holdfast_locks where ((kind=1 and lease_until>" MY_NOW
        ") or (kind=4 and size>0))",
        " union select name from holdfast_holds where lease_until>" MY_NOW};
    char end[HF_NAME_MAX];
    size_t len = 0;
    bool ends = query_behind(q, end, &len);

    for (int i = 0; i < 2; i++) {
        hf__my_sql(&m->cmd, "%s and name>=%N", parts[i]);
        if (ends)
            hf__my_sql(&m->cmd, " and name<%x", end, len);
        if (q->names->len) /* q->count is the length of the client's prefix */
            hf__my_sql(&m->cmd, " and name>x'%h%h'", q->name, (size_t)q->count,
                       q->names->names[q->names->len - 1].bytes,
                       q->names->names[q->names->len - 1].len);
    }
    hf__my_sql(&m->cmd, " order by name limit %u", (uint64_t)LIST_ROWS);
}

/* Returns whether the name belongs to the list. If not, the list must fail: the
 * next page begins after the last name, so a wrong name could make the list
 * endless. */
static bool query_is_wanted(const struct hf__query *q, const struct my_value *v)
{
    return v->text && v->len >= q->name_len && v->len <= HF_NAME_MAX &&
           memcmp(v->text, q->name, q->name_len) == 0;
}

/* Returns HF__PENDING if the next page was requested. */
static int query_listed(struct mysql *m, struct hf__query *q,
                        const struct my_answer *a)
{
    const struct my_result *r = a->first;
    int rc;

    if (r->columns != 1)
        return HF_EPROTO;
    for (const struct my_row *row = r->rows; row; row = row->next) {
        const struct my_value *v = &row->value[0];

        if (!query_is_wanted(q, v))
            return HF_EPROTO;
        if ((rc = m->core->add_name(m->client, q, v->text, v->len)))
            return rc;
        q->count = v->len - q->names->names[q->names->len - 1].len;
    }
    return r->rows_len < LIST_ROWS ? HF__DONE : hf__my_resend(m, &q->req);
}

/* ---- break -------------------------------------------------------------- */

/* Writes the condition that selects the hold to break. An owner in a format
 * that is not ours matches no hold. */
static void query_put_whom(struct mysql *m, const struct hf__query *q)
{
    const char *colon = strchr(q->owner, ':');

    if (q->token)
        hf__my_sql(&m->cmd, " and token=%u", q->token);
    if (q->owner[0])
        hf__my_sql(&m->cmd, " and concat(lower(hex(owner)),':',hold)=%x",
                   colon ? q->owner : "", colon ? strlen(q->owner) : 0);
}

static void query_put_break(struct mysql *m, const struct hf__query *q)
{
    struct my_conn *c = &m->cmd;

    hf__my_sql(c, "start transaction;select kind into @k from holdfast_locks "
                  "where name=%N for update;update holdfast_locks set "
                  "lease_until=" MY_PAST " where name=%N and kind=1 and "
                  "lease_until>" MY_NOW " and " MY_CLOCK "<%E");
    query_put_whom(m, q);
    hf__my_sql(c, ";set @g=row_count();delete from holdfast_holds where "
                  "name=%N and lease_until>" MY_NOW " and " MY_CLOCK "<%E");
    query_put_whom(m, q);
    hf__my_sql(c,
               ";set @g=@g+row_count();update holdfast_locks set size=0 where "
               "name=%N and kind=4 and size>0 and %u and " MY_CLOCK
               "<%E;set @g=@g+row_count();commit;"
               "select is_used_lock('hfq:%Q'),@k=4,@g," MY_CLOCK "<%E," MY_CLOCK
               ",ifnull((select token from holdfast_locks where name=%N and "
               "kind=1 and lease_until>" MY_NOW
               "),(select max(token) from holdfast_holds where name=%N and "
               "lease_until>" MY_NOW "))",
               (uint64_t)(!q->token && !q->owner[0]));
}

enum { FIRST, IS_LATCH, DONE, IN_TIME, CLOCK, OTHERS, BROKEN };

static int query_broken(struct mysql *m, struct hf__query *q,
                        const struct my_answer *a)
{
    const struct my_result *last = a->last;
    const struct my_row *row = last->rows;

    if (last->columns != BROKEN || !row)
        return HF_EPROTO;
    hf__my_clock(m, hf__my_num(row, CLOCK));
    if (hf__my_num(row, DONE)) {
        hf__my_ring(m, hf__my_num(row, FIRST));
        if (hf__my_num(row, IS_LATCH))
            hf__my_ring_all(m, q);
        return HF__DONE;
    }
    if (!hf__my_num(row, IN_TIME))
        return hf__my_resend(m, &q->req);
    if (!row->value[OTHERS].text)
        return m->core->why(m->client, HF_ENOTOWNER, "it is not held");
    q->count = hf__my_num(row, OTHERS);
    return HF_EBUSY;
}

/* ---- ask ---------------------------------------------------------------- */

/* Raises the counter of asks, which a holder reads when it renews. */
static const char ask[] =
    "update holdfast_locks set asks=asks+1 where name=%N and kind=1 "
    "and lease_until>" MY_NOW " and " MY_CLOCK "<%E;"
    "update holdfast_holds set asks=asks+1 where name=%N and "
    "lease_until>" MY_NOW " and " MY_CLOCK "<%E;"
    "select " MY_CLOCK "<%E," MY_CLOCK;

static int query_asked(struct mysql *m, struct hf__query *q,
                       const struct my_answer *a)
{
    const struct my_result *holds = hf__my_at(a->first, 1);
    const struct my_result *last = hf__my_at(a->first, 2);

    if (!last || last->columns != 2 || !last->rows)
        return HF_EPROTO;
    hf__my_clock(m, hf__my_num(last->rows, 1));
    if (a->first->affected || holds->affected)
        return HF__DONE;
    return hf__my_num(last->rows, 0) ? HF_ENOTOWNER : hf__my_resend(m, &q->req);
}

/* ---- requests of a holder ----------------------------------------------- */

static const char downgrade[] =
    "update holdfast_holds set mode=0 where name=%N and owner=%O "
    "and hold=%H and lease_until>" MY_NOW ";select count(*),"
    "is_used_lock('hfq:%Q') from holdfast_holds where name=%N and "
    "owner=%O and hold=%H and lease_until>" MY_NOW;

static int query_gone_down(struct mysql *m, struct hf__query *q,
                           const struct my_answer *a)
{
    const struct my_result *last = a->last;

    (void)q;
    if (last->columns != 2)
        return HF_EPROTO;
    hf__my_ring(m, hf__my_num(last->rows, 1));
    return hf__my_num(last->rows, 0) ? HF__DONE : HF_ENOTOWNER;
}

/* Writes a transaction that locks the row of the hold. The UPDATE that writes
 * the value joins that row, so the UPDATE changes nothing if the hold has
 * ended. */
static void query_put_put(struct mysql *m, const struct hf__query *q)
{
    const struct hf__remote *r = q->line;
    const char *table =
        r->kind == HF_MUTEX ? "holdfast_locks" : "holdfast_holds";

    hf__my_sql(
        &m->cmd,
        "set @v=%x,@t=null;start transaction;select token into @t from "
        "%s where name=%x and owner=%O and hold=%H and lease_until>" MY_NOW
        " and " MY_CLOCK "<%E for update;"
        "insert into holdfast_values(name,value,token,written) "
        "select %N,'',@t," MY_NOW " from dual where @t is not null "
        "on duplicate key update token=holdfast_values.token;",
        q->value, q->value_len, table, r->name, (size_t)r->name_len);
    hf__my_sql(
        &m->cmd,
        "update holdfast_values v join %s g on g.name=%x and g.owner=%O "
        "and g.hold=%H and @t is not null set v.value=@v,v.token=g.token,"
        "v.written=" MY_NOW " where v.name=%N;commit;set @v=null;"
        "select @t is not null," MY_CLOCK "<%E," MY_CLOCK,
        table, r->name, (size_t)r->name_len);
}

/* A PUT that came too late is not sent again, because the line in its query may
 * no longer exist. */
static int query_written(struct mysql *m, struct hf__query *q,
                         const struct my_answer *a)
{
    const struct my_result *last = a->last;
    const struct my_row *row = last->rows;

    (void)q;
    if (last->columns != 3 || !row)
        return HF_EPROTO;
    hf__my_clock(m, hf__my_num(row, 2));
    if (hf__my_num(row, 0))
        return HF__DONE;
    return hf__my_num(row, 1)
               ? HF_ENOTOWNER
               : m->core->why(m->client, HF_EUNKNOWN, "it came too late");
}

/* ---- sending, answers --------------------------------------------------- */

/* For each request, the function that reads its answer; and its statements, or
 * the function that writes them if they depend on more than the letters. */
static const struct {
    /* Returns HF__DONE, HF__PENDING if the request was sent again, or a code;
     * HF_EPROTO ends the connection. */
    int (*answer)(struct mysql *, struct hf__query *, const struct my_answer *);
    const char *sql;
    void (*put)(struct mysql *, const struct hf__query *);
} ops[] = {
    [HF__INSPECT] = {query_inspected, inspect},
    [HF__LIST] = {query_listed, .put = query_put_list},
    [HF__BREAK] = {query_broken, .put = query_put_break},
    [HF__DOWNGRADE] = {query_gone_down, downgrade},
    [HF__LATCH_SET] = {hf__my_latch_counted, hf__my_latch_set},
    [HF__LATCH_DOWN] = {hf__my_latch_counted, hf__my_latch_down},
    [HF__LATCH_GET] = {hf__my_latch_counted, hf__my_latch_get},
    [HF__ASK] = {query_asked, ask},
    [HF__PUT] = {query_written, .put = query_put_put},
    [HF__DIAGNOSE] = {hf__my_diagnosed, .put = hf__my_diagnose_put},
};

int hf__my_query_encode(struct mysql *m, struct hf__req *req)
{
    struct hf__query *q = (struct hf__query *)req;
    uint8_t hash[MY_HASH_LEN];

    if (m->core->now() >= req->meant_until)
        return m->core->why(m->client, HF_EUNKNOWN, "not sent in time");
    hf__my_start(m, req);
    hf__my_hash(m, q->name, q->name_len, hash);
    hf__my_bind_name(&m->cmd, q->name, q->name_len, hash);
    hf__my_bind_number(&m->cmd, 'R', q->request);
    hf__my_bind_number(&m->cmd, 'S', q->count);
    /* Answers are kept for longer than a request can be repeated. */
    hf__my_bind_number(&m->cmd, 'U', (3ULL * m->op_timeout_ms + 1000) * 1000);
    if (ops[req->op].sql)
        hf__my_sql(&m->cmd, ops[req->op].sql);
    else
        ops[req->op].put(m, q);
    return hf__my_sent(m, req) ? 0 : HF_ENOMEM;
}

int hf__my_query_answer(struct mysql *m, const struct my_flight *f,
                        const struct my_answer *a)
{
    struct hf__query *q = (struct hf__query *)f->req;
    int rc = q ? ops[f->op].answer(m, q, a) : HF__PENDING;

    if (rc == HF_EPROTO)
        return rc;
    if (rc != HF__PENDING)
        hf__my_finish(m, &q->req, rc);
    return 0;
}
