/* clang-format off */
/*
 * Those who wait. A connection waits for one line at a time:
 *
 *           get_lock(queue), of a mutex get_lock(bell) behind it
 *   FREE ----------------------------> QUEUES
 *    ^                                    | its answer tells the line to ask
 *    |                                    v
 *    +--------- release_lock <--------- FIRST: if the line has to wait still,
 *      (KILL QUERY before that,                it waits for the bell, or sleeps
 *       if it waits)                           and looks, then tells it again
 *
 * Nothing else is sent on it, so that KILL QUERY, by which a wait is cancelled,
 * hits nothing else. The next wait begins when both the KILL and what it ended
 * are answered.
 *
 * How long somebody waits is kept by the core: GET_LOCK of MariaDB counts by
 * the wall clock, and that of MySQL in whole seconds.
 */
/* clang-format on */
#include "mysql.h"

#include <errno.h>
#include <string.h>

#define QUEUE_S 86400 /* then it stands in line again */
#define BELL_S 10     /* then the line looks at the row */
/* The server ends a connection that has the queue and says nothing. */
#define IDLE_S 30
#define LINGER_MS 5000
/* After the server has refused one. */
#define REFUSED_MS 1000
/* A KILL QUERY that came before the statement that it is for is lost. */
#define AGAIN_MS 20
#define LEAVES_MAX 100
/* Who waited for longer did not find the queue empty. */
#define CROWDED_US 1000LL

static bool is_up(const struct my_wait *w)
{
    return w->conn.link.state == NET_UP && !w->conn.link.stream.broken;
}

bool hf__my_is_first(const struct my_line *line)
{
    return line->wait && line->wait->is_first && !line->wait->leaves;
}

static void ring(struct mysql *m, struct my_wait *w)
{
    w->rang = true;
    if (w->line->asking)
        w->line->rang = true;
    else
        m->core->bell(m->client, w->line->remote);
}

/* ---- statements --------------------------------------------------------- */

static my_answer_fn answered, left;

/* Who waits, for those who look at the server's list of statements: query.c
 * reads it. */
static void put_about(struct my_wait *w)
{
    const struct mysql *m = w->m;
    const struct hf__remote *r = w->line->remote;

    hf__my_sql(&w->conn, "/*hf:%h %h %u %u %u %u %u %h. %h.*/ ", w->hash,
               MY_HASH_LEN, m->owner, MY_OWNER_LEN, w->line->asked_id, m->pid,
               (uint64_t)r->mode, (uint64_t)w->permits, w->since_us, m->host,
               strlen(m->host), r->label, hf__my_label_len(r));
}

/* 1: it has rung, or there is none; 2: it has not, for so long. */
static void put_bell(struct my_wait *w)
{
    if (w->rings)
        hf__my_sql(&w->conn,
                   "if(get_lock('hfb:%h',%u)=1,release_lock('hfb:%h'),2)",
                   w->hash, MY_HASH_LEN, (uint64_t)(w->ended ? 0 : BELL_S),
                   w->hash, MY_HASH_LEN);
    else
        hf__my_sql(&w->conn, "1");
    w->ended = false;
}

/* 1: it is worth asking. */
static void put_look(struct my_wait *w)
{
    const struct hf__remote *r = w->line->remote;
    struct my_conn *c = &w->conn;

    if (r->kind == HF_MUTEX)
        hf__my_sql(c,
                   "select lease_until<=utc_timestamp(6) from holdfast_locks "
                   "where name=%x and kind=1",
                   r->name, (size_t)r->name_len);
    else if (r->kind == HF_LATCH)
        hf__my_sql(c,
                   "select size=0 or token<>%u from holdfast_locks where "
                   "name=%x and kind=4",
                   w->line->round, r->name, (size_t)r->name_len);
    else
        hf__my_share_look(c, r, w->permits);
}

static void say(struct my_wait *w)
{
    struct my_conn *c = &w->conn;

    hf__my_begin(c);
    put_about(w);
    if (!w->is_first) {
        hf__my_sql(c,
                   "select if(if(is_used_lock('hfq:%h')<=>connection_id(),1,"
                   "get_lock('hfq:%h',%u))=1,",
                   w->hash, MY_HASH_LEN, w->hash, MY_HASH_LEN,
                   (uint64_t)QUEUE_S);
        put_bell(w);
        hf__my_sql(c, ",0)");
    } else if (w->rings) {
        hf__my_sql(c, "select ");
        put_bell(w);
    } else {
        hf__my_sql(c, "do sleep(%u/1000);", (uint64_t)w->doze_ms);
        put_look(w);
        w->doze_ms *= 2;
        if (w->doze_ms > MY_DOZE_MAX_MS)
            w->doze_ms = MY_DOZE_MAX_MS;
    }
    if (!hf__my_end(c, answered)) {
        c->link.stream.broken = ENOMEM;
        return;
    }
    w->dozes = w->is_first && !w->rings;
    w->queues = w->waits = true;
    hf__net_flush(&c->link.stream);
}

/* Once, and for each statement that a KILL QUERY may hit instead of the one
 * that it is for, once more. All of it is sent now: nobody may drive us for
 * long, and others stand behind. */
static void leave(struct my_wait *w)
{
    struct my_conn *c = &w->conn;
    int times = w->waits ? 2 : 1;

    if (w->waits)
        w->killing = hf__my_kill(w->m, c->thread);
    for (int i = 0; i < times; i++) {
        hf__my_begin(c);
        hf__my_sql(c, "do release_lock('hfq:%h')", w->hash, MY_HASH_LEN);
        if (!hf__my_end(c, left)) {
            c->link.stream.broken = ENOMEM;
            return;
        }
        w->leaves++;
    }
    w->again_at = w->waits ? w->m->core->now() + AGAIN_MS * HF__MS : HF__NEVER;
    hf__net_flush(&c->link.stream);
}

static void move(struct my_wait *w)
{
    if (!is_up(w) || w->waits || w->leaves || w->killing)
        return;
    if (!w->line) {
        w->idle_at = w->m->core->now();
        return;
    }
    if (w->rang)
        return;
    if (!w->queues)
        memcpy(w->hash, w->line->hash, MY_HASH_LEN);
    say(w);
}

static bool is_yes(const struct my_result *r)
{
    return r->columns && r->rows && hf__my_num(r->rows, 0);
}

/* If there is no row, everything has changed. */
static bool is_worth_it(const struct my_result *r)
{
    return r->error || !r->rows || is_yes(r);
}

/* Some errors say no more than that the wait was ended. */
static int answered(struct my_conn *c, struct my_sent *sent,
                    const struct my_result *r, hf__time now)
{
    struct my_wait *w = c->owner;

    (void)sent;
    r = hf__my_last(r);
    if (r->error && !hf__my_again(r->error))
        return hf__my_hello_refused(c, r, now);
    w->waits = false;
    w->ended = r->error; /* it may be the first, and is to look */
    if (!w->is_first)
        w->is_first = is_yes(r);
    if (w->line && w->is_first && !w->leaves && (!w->dozes || is_worth_it(r)))
        ring(w->m, w);
    move(w);
    return 0;
}

static int left(struct my_conn *c, struct my_sent *sent,
                const struct my_result *r, hf__time now)
{
    struct my_wait *w = c->owner;

    (void)sent;
    if (r->error && !hf__my_again(r->error))
        return hf__my_hello_refused(c, r, now);
    if (--w->leaves == 0)
        w->queues = w->is_first = false;
    move(w);
    return 0;
}

/* ---- the connection ----------------------------------------------------- */

/* The numbers of threads, and user locks, are those of one server: cmd has to
 * be there, too. What is between us may lead to several. */
static int session_set(struct my_conn *c, struct my_sent *sent,
                       const struct my_result *r, hf__time now)
{
    struct my_wait *w = c->owner;
    const struct my_result *last = hf__my_last(r);

    (void)sent;
    if (last->error)
        return hf__my_hello_refused(c, r, now);
    if (last->columns != 1 || !last->rows)
        return HF_EPROTO;
    return hf__my_num(last->rows, 0) == w->m->cmd.thread
               ? 0
               : hf__link_why(&c->link, HF_EBACKEND,
                              "it leads to another server than before");
}

static int hello(struct my_conn *c, hf__time now)
{
    struct mysql *m = ((struct my_wait *)c->owner)->m;

    (void)now;
    hf__my_put_session(c, IDLE_S);
    hf__my_sql(c, ";select is_used_lock('hfc:%h')", m->owner, MY_OWNER_LEN);
    return hf__my_say(c, session_set);
}

static void up(struct my_conn *c, hf__time now)
{
    (void)now;
    move(c->owner);
}

/* Whoever waited looks, and finds another one, or polls. */
static void leave_line(struct mysql *m, struct my_wait *w)
{
    struct my_line *line = w->line;

    if (!line)
        return;
    ring(m, w);
    w->line = NULL;
    line->wait = NULL;
}

static void down(struct my_conn *c, int code, bool was_up, hf__time now)
{
    struct my_wait *w = c->owner;

    (void)code;
    if (!was_up || c->link.refused_at == now)
        w->m->waits_from = now + REFUSED_MS * HF__MS;
    w->is_over = true;
    leave_line(w->m, w);
}

static const struct my_owner waiting = {.hello = hello, .up = up, .down = down};

static struct my_wait *new_wait(struct mysql *m)
{
    struct my_wait *w;

    if (m->waits_len >= m->waits_most || m->core->now() < m->waits_from)
        return NULL;
    w = m->core->alloc(m->client, sizeof(*w));
    if (!w)
        return NULL;
    w->m = m;
    hf__my_conn_init(&w->conn, m->core, m->client, &waiting, w,
                     sizeof(struct my_sent));
    hf__my_aim(m, &w->conn, &m->here, m->connect_ms);
    w->conn.link.lost = "mysql: lost a connection for waiting";
    w->conn.link.silence_ms = UINT32_MAX; /* it may wait for as long */
    hf__link_start(&w->conn.link, m->core->now());
    w->next = m->waits;
    m->waits = w;
    m->waits_len++;
    return w;
}

static void free_wait(struct mysql *m, struct my_wait **at)
{
    struct my_wait *w = *at;

    *at = w->next;
    m->waits_len--;
    hf__my_conn_fini(&w->conn);
    m->core->free(m->client, w);
}

/* ---- lines -------------------------------------------------------------- */

/* One that is free; or is about to be; or a new one. */
static struct my_wait *find_wait(struct mysql *m)
{
    struct my_wait *best = NULL;

    for (struct my_wait *w = m->waits; w; w = w->next)
        if (!w->line && !w->is_over && (!best || !w->leaves))
            best = w;
    return best ? best : new_wait(m);
}

bool hf__my_wait(struct mysql *m, struct my_line *line, bool rings,
                 uint32_t permits)
{
    struct my_wait *w = line->wait;

    if (m->polls)
        return false;
    if (!w) {
        w = find_wait(m);
        if (!w)
            return false;
        w->line = line;
        line->wait = w;
        w->began_at = m->core->now();
        w->doze_ms = MY_DOZE_MS;
        w->permits = permits;
        w->since_us =
            m->server_us + (uint64_t)(m->core->now() - m->server_at) / 1000;
    }
    w->rang = false;
    w->rings = line->remote->kind == HF_MUTEX && (rings || !w->is_first);
    move(w);
    return true;
}

bool hf__my_waited(const struct my_line *line, hf__time now)
{
    return line->wait && now - line->wait->began_at > CROWDED_US * 1000;
}

void hf__my_wait_end(struct mysql *m, struct my_line *line)
{
    struct my_wait *w = line->wait;

    (void)m;
    if (!w)
        return;
    line->wait = NULL;
    w->line = NULL;
    if (w->queues && !w->leaves && is_up(w))
        leave(w);
    else
        move(w);
}

void hf__my_wait_killed(struct mysql *m, uint64_t thread)
{
    for (struct my_wait *w = m->waits; w; w = w->next)
        if (w->killing && w->conn.thread == thread) {
            w->killing = false;
            move(w);
        }
}

/* ---- driving ------------------------------------------------------------ */

void hf__my_waits_lost(struct mysql *m)
{
    for (struct my_wait *w = m->waits; w; w = w->next) {
        hf__my_conn_stop(&w->conn);
        w->is_over = true;
        leave_line(m, w);
    }
}

void hf__my_waits_ready(struct mysql *m, uint32_t tag, uint32_t events,
                        hf__time now)
{
    for (struct my_wait *w = m->waits; w; w = w->next)
        if (hf__link_ready(&w->conn.link, tag, events, now))
            return;
}

static hf__time again_at(const struct my_wait *w)
{
    return w->waits && w->leaves && !w->killing && w->leaves < LEAVES_MAX &&
                   is_up(w)
               ? w->again_at
               : HF__NEVER;
}

static hf__time over_at(const struct my_wait *w)
{
    bool is_idle = !w->line && !w->waits && !w->leaves && is_up(w);

    return w->is_over ? 0
           : is_idle  ? w->idle_at + LINGER_MS * HF__MS
                      : HF__NEVER;
}

void hf__my_waits_advance(struct mysql *m, hf__time now)
{
    for (struct my_wait **at = &m->waits, *w; (w = *at);) {
        if (!w->is_over)
            hf__link_advance(&w->conn.link, now);
        if (now >= again_at(w))
            leave(w);
        if (now >= over_at(w))
            free_wait(m, at);
        else
            at = &w->next;
    }
}

hf__time hf__my_waits_timeout(const struct mysql *m)
{
    hf__time at = HF__NEVER;

    for (const struct my_wait *w = m->waits; w; w = w->next) {
        at = hf__min_time(at, hf__link_timeout(&w->conn.link));
        at = hf__min_time(at, hf__min_time(over_at(w), again_at(w)));
    }
    return at;
}

void hf__my_waits_fini(struct mysql *m)
{
    while (m->waits)
        free_wait(m, &m->waits);
}
