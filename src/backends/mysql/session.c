/*
 * The first statements of a connection. The thread of the previous command
 * connection may still be running at the server, on requests that are no longer
 * wanted. For this reason cmd owns a user lock of the client (hfc:<owner>): a
 * new cmd that finds this user lock taken kills the thread that owns it, and
 * waits until the user lock is free.
 */
#include "session.h"

#include "clock.h"
#include "error.h"
#include "name.h"
#include "tables.h"
#include "wire.h"

#include <string.h>

#define PAUSE_MAX_MS 1000

/* ---- all connections ---------------------------------------------------- */

/* Writes the settings of the session: the server closes the connection after
 * idle_s seconds of silence, statements have no time limit except while they
 * wait for a row, and nothing depends on the server's defaults. The executable
 * comments make the server itself select the setting of MariaDB or that of
 * MySQL: the client cannot select it, because a proxy may have invented the
 * version that the client got. */
void hf__my_put_session(const struct mysql *m, struct my_conn *c,
                        uint32_t idle_s)
{
    hf__my_begin(c);
    hf__my_bind_client(m, c);
    hf__my_sql(c,
               "set session transaction isolation level read committed;"
               "set session autocommit=1,completion_type=0,time_zone='+00:00',"
               "sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',"
               "innodb_lock_wait_timeout=1,wait_timeout=%u"
               "/*M!100101 ,max_statement_time=0*/"
               "/*!50708 ,max_execution_time=0*/",
               (uint64_t)idle_s);
}

void hf__my_aim(struct mysql *m, struct my_conn *c, struct net_endpoint *peer,
                uint32_t connect_ms)
{
    struct net_link *l = &c->link;
    uint32_t pause_ms = m->op_timeout_ms / 8;

    c->login = &m->login;
    l->peer = peer;
    l->tags = &m->tags;
    l->stream.tls = m->login.tls;
    l->doubt = "; is it MySQL or MariaDB?";
    l->connect_ms = m->login.tls ? connect_ms - connect_ms / 8 : connect_ms;
    l->silence_ms = 2 * m->op_timeout_ms;
    l->pause_ms = pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS;
}

int hf__my_hello_refused(struct my_conn *c, const struct my_answer *a)
{
    uint16_t error = a->last->error;
    char advice[640];

    hf__my_advice(a, c->login, advice, sizeof(advice));
    c->link.lasts = hf__my_means(error, MY_LASTS);
    c->link.refused_at = a->now;
    return hf__link_why(&c->link, hf__my_code(error), "%.160s%s%s",
                        a->last->text, advice[0] ? ". Run: " : "", advice);
}

/* ---- the tables --------------------------------------------------------- */

static my_answer_fn session_tables_seen;

/* A missing column is an error; additional columns do no harm. */
static int session_check_tables(struct my_conn *c)
{
    hf__my_begin(c);
    for (size_t i = 0; i < MY_TABLES; i++) {
        const struct my_table *t = &hf__my_tables[i];

        hf__my_sql(c, i ? ";select " : "select ");
        for (size_t n = 0; t->column[n]; n++) {
            hf__my_put(c, ",", n > 0);
            hf__my_put(c, t->column[n], strcspn(t->column[n], " "));
        }
        hf__my_sql(c, " from %s limit 0", t->name);
    }
    return hf__my_end(c, session_tables_seen) ? 0 : HF_ENOMEM;
}

static int session_tables_made(struct my_conn *c, const struct my_answer *a)
{
    return a->last->error ? hf__my_hello_refused(c, a) : 0;
}

/* Creates the first missing table, and checks again. Existing tables are not
 * touched, because CREATE TABLE IF NOT EXISTS needs the right to create even if
 * the table exists. */
static int session_tables_seen(struct my_conn *c, const struct my_answer *a)
{
    struct mysql *m = c->owner;
    uint16_t error = a->last->error;
    char sql[MY_STATEMENT_MAX];
    uint32_t there = 0;

    if (!error)
        return 0;
    while (hf__my_at(a->first, there) != a->last)
        there++;
    if (error != MY_NO_TABLE || there < m->made_tables || there >= MY_TABLES)
        return hf__my_hello_refused(c, a);
    m->made_tables = there + 1;
    hf__my_make_table(sql, there, NULL);
    hf__my_begin(c);
    hf__my_sql(c, "%s", sql);
    if (!hf__my_end(c, session_tables_made))
        return HF_ENOMEM;
    return session_check_tables(c);
}

/* ---- what the server is ------------------------------------------------- */

static bool session_is_on(const struct my_row *row, const char *name)
{
    return row->value[0].text && strcmp(row->value[0].text, name) == 0 &&
           row->value[1].text && strcmp(row->value[1].text, "ON") == 0;
}

/* Returns true for the errors of a server that is definitely too old. Other
 * errors may be temporary. The version proves nothing, because it may be that
 * of a proxy. */
static bool session_is_not_understood(uint16_t error)
{
    return error == 1064 || /* syntax */
           error == 1193 || /* no such variable */
           error == 1238;   /* not a variable of a session, only a global one */
}

static int session_check_server(struct mysql *m, struct my_conn *c,
                                const struct my_row *id,
                                const struct my_row *list, hf__time now)
{
    bool proxied = hf__my_num(id, 0) != c->thread;

    if (c->is_too_old && !proxied)
        return hf__my_too_old(c, now);
    m->is_proxied = proxied;
    m->has_stray = !proxied && !hf__my_num(id, 2);
    m->polls = m->must_poll ? MY_MUST_POLL
               : proxied    ? "a proxy is between us and the server"
                            : NULL;
    hf__my_clock(m, hf__my_num(id, 1));
    for (; list; list = list->next) {
        if (session_is_on(list, "read_only") ||
            session_is_on(list, "super_read_only")) {
            c->link.refused_at = now;
            return hf__link_why(&c->link, HF_EBACKEND,
                                "the server is read-only: it is a replica, or "
                                "its administrator has set read_only");
        }
        if (session_is_on(list, "wsrep_on") && !m->polls)
            m->polls = "the server is part of a Galera cluster, where GET_LOCK "
                       "is worth nothing";
    }
    return 0;
}

/* ---- the previous thread ------------------------------------------------ */

/* Handles the answer to KILL. The thread was found because it holds the user
 * lock 'hfc:...' of this client, but any account can take a lock of that name.
 * MY_NOT_YOURS means that the thread runs under another account, so it is not a
 * thread of this client. Any other error is ignored: the thread has probably
 * ended before the KILL. */
static int session_stray_killed(struct my_conn *c, const struct my_answer *a)
{
    struct mysql *m = c->owner;

    m->has_stray = a->last->error != MY_NOT_YOURS;
    return 0;
}

static my_answer_fn session_stray_gone;

static int session_end_stray(struct my_conn *c)
{
    int rc = hf__my_say(c, "set @h=is_used_lock('hfc:%C');kill @h",
                        session_stray_killed);

    return rc ? rc
              : hf__my_say(c, "select get_lock('hfc:%C',1)",
                           session_stray_gone);
}

static int session_stray_gone(struct my_conn *c, const struct my_answer *a)
{
    const struct my_row *row = a->last->rows;
    struct mysql *m = c->owner;

    if (a->last->error && !hf__my_means(a->last->error, MY_AGAIN))
        return hf__my_hello_refused(c, a);
    if (!a->last->error && (!row || !row->value[0].text))
        return hf__link_why(&c->link, HF_EBACKEND, "GET_LOCK gives no answer");
    if (!m->has_stray || hf__my_num(row, 0))
        return session_check_tables(c);
    return session_end_stray(c);
}

static int session_server_seen(struct my_conn *c, const struct my_answer *a)
{
    struct mysql *m = c->owner;
    const struct my_result *id = hf__my_at(a->first, 2);
    const struct my_result *list = hf__my_at(a->first, 3);
    uint16_t error = a->last->error;
    int rc;

    if (c->is_too_old && session_is_not_understood(error))
        return hf__my_too_old(c, a->now);
    if (error)
        return hf__my_hello_refused(c, a);
    if (!id || !list || id->columns != 3 || !id->rows || list->columns != 2)
        return HF_EPROTO;
    rc = session_check_server(m, c, id->rows, list->rows, a->now);
    m->made_tables = 0;
    return rc             ? rc
           : m->has_stray ? session_end_stray(c)
                          : session_check_tables(c);
}

int hf__my_session_hello(struct my_conn *c, hf__time now)
{
    struct mysql *m = c->owner;

    (void)now;
    hf__my_put_session(m, c, m->idle_s);
    hf__my_sql(c, ";select connection_id()," MY_CLOCK
                  ",get_lock('hfc:%C',0);show variables where variable_name in "
                  "('read_only','super_read_only','wsrep_on')");
    return hf__my_end(c, session_server_seen) ? 0 : HF_ENOMEM;
}
