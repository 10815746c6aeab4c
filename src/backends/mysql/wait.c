/* clang-format off */
/*
 * Connections that wait; wait.h has the table of states.
 *
 *             get_lock(queue); for a mutex, also the bell after it
 *   IDLE -------------------------------------------------> QUEUES
 *    ^                                                        | its answer
 *    |  release_lock                                          v
 *    +----------------------------------------------------- FIRST
 *                                                           |   ^
 *      the attempt is refused: it waits for the bell (BELL), |   | its answer
 *      or checks the row and sleeps (SLEEPS)                 v   |
 *                                                      BELL, SLEEPS
 *
 * In FIRST the core must attempt on cmd. If the client is stopped or cut off,
 * this does not happen. For this reason wait_timeout is only a second or two:
 * after that time the server closes the silent connection, and the next waiter
 * becomes the first.
 *
 * A latch has no order: each of its waiters counts as the first.
 *
 * A wait that is cancelled in QUEUES, BELL or SLEEPS is ended together with its
 * connection, by KILL on cmd. KILL QUERY serves as a bell: it ends the sleep of
 * the first waiter. The statement that sleeps also checks the row, so that no
 * release is missed.
 *
 * The core limits how long a caller waits, because GET_LOCK counts by the wall
 * clock in MariaDB, and in whole seconds in MySQL.
 */
/* clang-format on */
#include "wait.h"

#include "aside.h"
#include "error.h"
#include "session.h"
#include "wait_sql.h"
#include "wire.h"

#include <errno.h>

/* An unused connection is closed before the server does so. */
#define LINGER_MS 500
/* If a connection could not be opened, or the server refused a statement on it,
 * no other waiting connection is created for this long. */
#define REFUSED_MS 1000
/* The pause after a connection was lost. It is 0, unless the loss follows the
 * end of the last pause within LOST_SOON_MS; in that case it doubles, from
 * LOST_MS up to LOST_MAX_MS. */
#define LOST_MS 10
#define LOST_MAX_MS 1000
#define LOST_SOON_MS 1000
/* If a lock waits longer than this, another client was in the queue or held the
 * lock. */
#define CROWDED_US 1000LL

static bool wait_is_up(const struct my_wait *w)
{
    return w->conn.link.state == NET_UP && !w->conn.link.stream.broken;
}

static bool wait_is_asleep(const struct my_wait *w)
{
    return w->state == MY_QUEUES || w->state == MY_BELL ||
           w->state == MY_SLEEPS;
}

static bool wait_has_order(const struct my_lock *lock)
{
    return lock->remote->kind != HF_LATCH;
}

bool hf__my_is_first(const struct my_lock *lock)
{
    return lock->wait &&
           (lock->wait->state == MY_FIRST || lock->wait->state == MY_BELL ||
            lock->wait->state == MY_SLEEPS);
}

static void wait_ring(struct mysql *m, struct my_wait *w)
{
    if (w->lock->attempting)
        w->lock->rang = true;
    else
        m->core->bell(m->client, w->lock->remote);
}

/* Ends a connection that is no longer wanted; advance() frees it. */
static void wait_end(struct my_wait *w)
{
    if (w->state == MY_OVER)
        return;
    hf__my_conn_stop(&w->conn);
    w->state = MY_OVER;
    w->m->waits_len--;
}

/* ---- statements --------------------------------------------------------- */

static my_answer_fn wait_answered, wait_left;

/* Sets how long the server may be silent. In QUEUES this is for ever, unless a
 * statement that leaves a queue is still in flight. */
static void wait_be_patient(struct my_wait *w)
{
    uint32_t ms = 2 * w->m->op_timeout_ms;

    w->conn.link.silence_ms = w->leaving              ? ms
                              : w->state == MY_QUEUES ? UINT32_MAX
                                                      : ms + 2000;
}

static void wait_say(struct my_wait *w)
{
    bool is_first = w->state == MY_FIRST || !wait_has_order(w->lock);
    enum my_wait_state state = !is_first  ? MY_QUEUES
                               : w->rings ? MY_BELL
                                          : MY_SLEEPS;

    hf__my_begin(&w->conn);
    hf__my_wait_put(w, state);
    if (!hf__my_end(&w->conn, wait_answered)) {
        w->conn.link.stream.broken = ENOMEM;
        return;
    }
    w->state = state;
    wait_be_patient(w);
    hf__net_flush(&w->conn.link.stream);
}

static void wait_leave(struct my_wait *w, const struct my_lock *lock)
{
    struct my_conn *c = &w->conn;

    hf__my_bind_bytes(c, 'Q', 'h', lock->hash, MY_HASH_LEN);
    if (hf__my_say(c, "do release_lock('hfq:%Q')", wait_left)) {
        c->link.stream.broken = ENOMEM;
        return;
    }
    w->leaving++;
    wait_be_patient(w);
    hf__net_flush(&c->link.stream);
}

static void wait_idle(struct my_wait *w)
{
    w->state = MY_IDLE;
    w->idle_at = w->m->core->now();
    w->skips_bell = false;
}

static bool wait_is_yes(const struct my_result *r)
{
    return r->columns && r->rows && hf__my_num(r->rows, 0);
}

/* Handles the answer of a wait. MY_AGAIN means that KILL QUERY has ended the
 * wait. In QUEUES the client then does not know whether it is the first, so it
 * queues again, but after that does not wait for the bell (skips_bell). In BELL
 * and SLEEPS the core must attempt. */
static int wait_answered(struct my_conn *c, const struct my_answer *a)
{
    const struct my_result *r = a->last;
    struct my_wait *w = c->owner;
    bool was_asleep;

    if (r->error && !hf__my_means(r->error, MY_AGAIN))
        return hf__my_hello_refused(c, a);
    w->skips_bell = r->error && w->state == MY_QUEUES;
    if (r->error)
        /* It is not known which statements were executed, so the wait_timeout
         * of the session is not known either. */
        w->turn_s = 0;
    if (w->state == MY_QUEUES && !wait_is_yes(r)) {
        wait_say(w);
        return 0;
    }
    was_asleep = w->state == MY_SLEEPS;
    w->state = MY_FIRST;
    if (was_asleep && !r->error && r->rows && !wait_is_yes(r)) {
        wait_say(w);
        return 0;
    }
    wait_ring(w->m, w);
    return 0;
}

/* A KILL QUERY that was sent while this client was the first may hit the
 * statement that leaves the queue. In that case the client ends the connection,
 * so that the server takes it out of the queue. */
static int wait_left(struct my_conn *c, const struct my_answer *a)
{
    struct my_wait *w = c->owner;

    if (hf__my_means(a->last->error, MY_AGAIN))
        return hf__link_why(&c->link, HF_EBACKEND, "%.160s", a->last->text);
    if (a->last->error)
        return hf__my_hello_refused(c, a);
    w->leaving--;
    wait_be_patient(w);
    return 0;
}

/* ---- the connection ----------------------------------------------------- */

/* Checks that this connection leads to the server of cmd, because connection
 * ids and user locks belong to one server. A load balancer may lead connections
 * to several servers. */
static int wait_session_set(struct my_conn *c, const struct my_answer *a)
{
    struct my_wait *w = c->owner;
    const struct my_result *last = a->last;

    if (last->error)
        return hf__my_hello_refused(c, a);
    if (last->columns != 1 || !last->rows)
        return HF_EPROTO;
    return hf__my_num(last->rows, 0) == w->m->cmd.thread
               ? 0
               : hf__link_why(&c->link, HF_EBACKEND,
                              "it leads to another server than before");
}

static int wait_hello(struct my_conn *c, hf__time now)
{
    struct my_wait *w = c->owner;

    (void)now;
    w->turn_s = MY_FAIR_TURN_S;
    hf__my_put_session(w->m, c, w->turn_s);
    hf__my_sql(c, ";select is_used_lock('hfc:%C')");
    return hf__my_end(c, wait_session_set) ? 0 : HF_ENOMEM;
}

static void wait_up(struct my_conn *c, hf__time now)
{
    struct my_wait *w = c->owner;

    (void)now;
    wait_idle(w);
    if (w->lock)
        wait_say(w);
}

/* Separates the connection from its lock and makes the core attempt again; the
 * lock then waits on another connection, or polls. */
static void wait_unassign(struct mysql *m, struct my_wait *w)
{
    struct my_lock *lock = w->lock;

    if (!lock)
        return;
    wait_ring(m, w);
    w->lock = NULL;
    lock->wait = NULL;
}

/* Sets a pause before the next new connection, because a device or proxy on the
 * way may cut each connection as soon as it waits. Several losses within one
 * pause count as one. */
static void wait_pause_after_loss(struct mysql *m, hf__time now)
{
    uint32_t ms = m->waits_pause_ms ? 2 * m->waits_pause_ms : LOST_MS;

    if (now < m->waits_from)
        return;
    if (now - m->waits_from >= LOST_SOON_MS * HF__MS)
        ms = 0;
    m->waits_pause_ms = ms < LOST_MAX_MS ? ms : LOST_MAX_MS;
    m->waits_from = now + m->waits_pause_ms * HF__MS;
}

static void wait_down(struct my_conn *c, int code, bool was_up, hf__time now)
{
    struct my_wait *w = c->owner;

    (void)code;
    if (!was_up || c->link.refused_at == now)
        w->m->waits_from = now + REFUSED_MS * HF__MS;
    else
        wait_pause_after_loss(w->m, now);
    wait_end(w);
    wait_unassign(w->m, w);
}

static const struct my_owner waiting = {
    .hello = wait_hello, .up = wait_up, .down = wait_down};

/* Returns a new connection, or NULL. advance() opens the connection: a slot may
 * call this function, and a failure to connect must not be reported from a
 * slot. */
static struct my_wait *new_wait(struct mysql *m)
{
    hf__time now = m->core->now();
    struct my_wait *w;

    if (m->waits_len >= m->waits_most || now < m->waits_from)
        return NULL;
    w = m->core->alloc(m->client, sizeof(*w));
    if (!w)
        return NULL;
    w->m = m;
    hf__my_conn_init(&w->conn, m->core, m->client, &waiting, w,
                     sizeof(struct my_sent));
    hf__my_aim(m, &w->conn, &m->here, m->connect_ms);
    w->conn.link.lost = "mysql: lost a connection for waiting";
    hf__link_start(&w->conn.link, now);
    m->core->due(m->client, now);
    w->next = m->waits;
    m->waits = w;
    m->waits_len++;
    return w;
}

static void free_wait(struct mysql *m, struct my_wait **at)
{
    struct my_wait *w = *at;

    wait_end(w);
    *at = w->next;
    hf__my_conn_fini(&w->conn);
    m->core->free(m->client, w);
}

/* ---- locks -------------------------------------------------------------- */

/* Finds an unused connection, or creates one. A connection that is leaving a
 * queue is the last choice: a KILL QUERY that was sent to the first of that
 * queue may still arrive, and would end the next wait on that connection. */
static struct my_wait *find_wait(struct mysql *m)
{
    struct my_wait *leaving = NULL, *w;

    for (w = m->waits; w; w = w->next) {
        if (w->lock || w->state == MY_OVER)
            continue;
        if (!w->leaving)
            return w;
        leaving = w;
    }
    w = new_wait(m);
    return w ? w : leaving;
}

bool hf__my_wait(struct mysql *m, struct my_lock *lock, bool rings,
                 uint32_t permits)
{
    struct my_wait *w = lock->wait;

    if (m->polls)
        return false;
    if (!w) {
        w = find_wait(m);
        if (!w)
            return false;
        w->lock = lock;
        lock->wait = w;
        w->began_at = m->core->now();
        w->permits = permits;
        w->since_us =
            m->server_us + (uint64_t)(m->core->now() - m->server_at) / 1000;
    }
    if (wait_is_asleep(w))
        return true;
    w->rings =
        lock->remote->kind == HF_MUTEX && (rings || w->state != MY_FIRST);
    if (wait_is_up(w))
        wait_say(w);
    return true;
}

bool hf__my_waited(const struct my_lock *lock, hf__time now)
{
    return lock->wait && now - lock->wait->began_at > CROWDED_US * 1000;
}

void hf__my_wait_end(struct mysql *m, struct my_lock *lock)
{
    struct my_wait *w = lock->wait;

    if (!w)
        return;
    lock->wait = NULL;
    w->lock = NULL;
    if (wait_is_asleep(w)) {
        hf__my_aside(m, "kill %u", (uint64_t)w->conn.thread);
        wait_end(w);
    } else if (w->state == MY_FIRST) {
        wait_idle(w);
        if (wait_has_order(lock) && wait_is_up(w))
            wait_leave(w, lock);
    }
}

/* ---- driving ------------------------------------------------------------ */

void hf__my_waits_lost(struct mysql *m)
{
    for (struct my_wait *w = m->waits; w; w = w->next) {
        wait_end(w);
        wait_unassign(m, w);
    }
}

void hf__my_waits_ready(struct mysql *m, uint32_t tag, uint32_t events,
                        hf__time now)
{
    for (struct my_wait *w = m->waits; w; w = w->next)
        if (hf__link_ready(&w->conn.link, tag, events, now))
            return;
}

static hf__time wait_over_at(const struct my_wait *w)
{
    bool is_idle = !w->lock && !w->leaving && w->state == MY_IDLE;

    return w->state == MY_OVER ? 0
           : is_idle           ? w->idle_at + LINGER_MS * HF__MS
                               : HF__NEVER;
}

void hf__my_waits_advance(struct mysql *m, hf__time now)
{
    for (struct my_wait **at = &m->waits, *w; (w = *at);) {
        if (w->state != MY_OVER)
            hf__link_advance(&w->conn.link, now);
        if (now >= wait_over_at(w))
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
        at = hf__min_time(at, wait_over_at(w));
    }
    return at;
}

void hf__my_waits_fini(struct mysql *m)
{
    while (m->waits)
        free_wait(m, &m->waits);
}
