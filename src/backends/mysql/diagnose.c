/*
 * Examines a server for hf_diagnose.
 *
 * First, each right is tested by a statement that changes no row. All these
 * statements are sent in one packet. The server stops at the first error in the
 * packet; the statements after it are then sent in another packet. query->count
 * is the index of the first right that has not been tested yet; query->token
 * has a bit for each missing right. After all rights have been tested, the
 * server's variables, its status, the engines of the tables and the user's
 * account are read.
 */
#include "diagnose.h"

#include "backends/common/finding.h"
#include "clock.h"
#include "cmd.h"
#include "error.h"
#include "outcome.h"
#include "tables.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIND(level, subject, ...)                                              \
    m->core->find(m->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

#define MY_PROMISE "a crashed process loses its hold within %u s (the ttl); "

/* ---- statements --------------------------------------------------------- */

static const struct right {
    const char *name, *before, *after;
} rights[] = {{"insert", "insert into", "select * from"},
              {"update", "update", "set name=name"},
              {"delete", "delete from", ""}};

#define RIGHTS (sizeof(rights) / sizeof(*rights))

static void diagnose_put_try(struct mysql *m, size_t i)
{
    const struct right *r = &rights[i % RIGHTS];
    const char *table = hf__my_tables[i / RIGHTS].name;

    hf__my_sql(&m->cmd, "%s %s %s %s where 1=0%s", r->before, table, r->after,
               i % RIGHTS ? "" : table, i + 1 < MY_TABLES * RIGHTS ? ";" : "");
}

enum { CLOCK, VARIABLES, STATUS, ENGINES, ACCOUNT, ANSWERS };

void hf__my_diagnose_put(struct mysql *m, const struct hf__query *q)
{
    if (q->count < MY_TABLES * RIGHTS) {
        for (size_t i = q->count; i < MY_TABLES * RIGHTS; i++)
            diagnose_put_try(m, i);
        return;
    }
    hf__my_sql(&m->cmd,
               "select " MY_CLOCK ";show variables where variable_name in "
               "('innodb_flush_log_at_trx_commit','innodb_flush_method',"
               "'log_bin','sync_binlog','binlog_format','max_connections',"
               "'max_user_connections','wsrep_on',"
               "'rpl_semi_sync_master_enabled','rpl_semi_sync_source_enabled');"
               "show status where variable_name in ('Threads_connected',"
               "'Slaves_connected','Rpl_semi_sync_master_clients',"
               "'Rpl_semi_sync_source_clients','wsrep_cluster_size');"
               "select table_name,engine from information_schema.tables where "
               "table_schema=database() and table_name in (");
    for (size_t i = 0; i < MY_TABLES; i++)
        hf__my_sql(&m->cmd, "%s'%s'", i ? "," : "", hf__my_tables[i].name);
    hf__my_sql(&m->cmd,
               ");select current_user(),(select count(*) from "
               "information_schema.user_privileges where "
               "privilege_type='PROCESS' and grantee=concat(char(39),"
               "substring_index(current_user(),'@',1),char(39),'@',char(39),"
               "substring_index(current_user(),'@',-1),char(39))),"
               "(select count(*) from information_schema.processlist where "
               "user=substring_index(current_user(),'@',1))");
}

/* ---- answers ------------------------------------------------------------ */

static const char *diagnose_value_of(const struct my_result *list,
                                     const char *name)
{
    for (const struct my_row *row = list->rows; row; row = row->next)
        if (row->value[0].text && !strcmp(row->value[0].text, name))
            return row->value[1].text ? row->value[1].text : "";
    return "";
}

static void diagnose_find_waiting(struct mysql *m, struct hf__query *q)
{
    if (m->polls)
        FIND(WARNING, "waiting",
             "waiting clients poll every %d to %d ms, in no order: %s",
             MY_POLL_MS, MY_POLL_MAX_MS, m->polls);
    else
        FIND(OK, "waiting",
             "waiting clients sleep in GET_LOCK, on at most %u connections "
             "(wait_connections); %u are open",
             m->waits_most, m->waits_len);
}

static bool diagnose_is(const struct my_result *list, const char *name,
                        const char *value)
{
    return strcasecmp(diagnose_value_of(list, name), value) == 0;
}

/* Returns a number that the server reports, limited to the range from 0 to
 * INT32_MAX. The server may report any value, and the product of two of these
 * numbers must not overflow. */
static long diagnose_number(const struct my_result *list, const char *name)
{
    long n = strtol(diagnose_value_of(list, name), NULL, 10);

    return n < 0 ? 0 : n < INT32_MAX ? n : INT32_MAX;
}

static bool diagnose_find_durable(struct mysql *m, struct hf__query *q,
                                  const struct my_result *list)
{
    const char *flush =
        diagnose_value_of(list, "innodb_flush_log_at_trx_commit");
    bool log = diagnose_is(list, "log_bin", "ON");

    if (strcmp(flush, "1") != 0) {
        FIND(WARNING, "persistence",
             "innodb_flush_log_at_trx_commit is %s: a crash of the machine "
             "forgets the last holds and tokens. Set it to 1",
             *flush ? flush : "not known");
    } else if (log && diagnose_is(list, "sync_binlog", "0")) {
        FIND(WARNING, "persistence",
             "sync_binlog is 0: a crash of the machine may forget the last "
             "holds and tokens. Set it to 1");
    } else if (diagnose_is(list, "innodb_flush_method", "nosync")) {
        FIND(WARNING, "persistence",
             "innodb_flush_method is nosync: a crash of the machine forgets "
             "the last holds and tokens. Remove it");
    } else {
        FIND(OK, "persistence",
             "innodb_flush_log_at_trx_commit is 1: holds and tokens survive a "
             "crash of the machine");
        return true;
    }
    return false;
}

/* In a Galera cluster clients poll (session.c). If two nodes grant the same
 * name at the same time, the cluster refuses one of the two commits, and the
 * client whose commit was refused attempts again. */
static void diagnose_find_galera(struct mysql *m, struct hf__query *q,
                                 const struct my_result *status)
{
    long nodes = diagnose_number(status, "wsrep_cluster_size");

    if (nodes < 3)
        FIND(WARNING, "galera",
             "a Galera cluster of %ld: it works only while %s up. Use three or "
             "five nodes. Leases go by the clock of the node that is asked: "
             "run NTP on all of them",
             nodes, nodes == 1 ? "this one is" : "both are");
    else
        FIND(WARNING, "galera",
             "a Galera cluster of %ld: one holder at a time, because a commit "
             "that conflicts is refused, but leases go by the clock of the "
             "node that is asked, and a clock that is ahead ends them early. "
             "Run NTP on all nodes, or let all clients use one node",
             nodes);
}

/* Adds a finding on replication. Returns whether a failover may let in a second
 * holder. */
static bool diagnose_find_replication(struct mysql *m, struct hf__query *q,
                                      const struct my_result *list,
                                      const struct my_result *status)
{
    /* the names of MariaDB */
    const char *replicas = diagnose_value_of(status, "Slaves_connected");
    bool waits = diagnose_is(list, "rpl_semi_sync_master_enabled", "ON") ||
                 diagnose_is(list, "rpl_semi_sync_source_enabled", "ON");
    long heard = diagnose_number(status, "Rpl_semi_sync_master_clients") +
                 diagnose_number(status, "Rpl_semi_sync_source_clients");

    if (!diagnose_is(list, "log_bin", "ON")) {
        FIND(OK, "replication",
             "no binary log: no replicas, no failover, and no locks while the "
             "server is down");
        return false;
    }
    if (diagnose_is(list, "binlog_format", "STATEMENT"))
        FIND(ERROR, "replication",
             "binlog_format is STATEMENT, which READ COMMITTED does not allow: "
             "no lock can be acquired. Set binlog_format to MIXED or ROW");
    else if (strcmp(replicas, "0") == 0)
        FIND(OK, "replication",
             "the server writes a binary log, and no replica is connected: no "
             "failover, and no locks while the server is down");
    else if (waits && heard)
        FIND(WARNING, "replication",
             "%ld semi-synchronous replicas: at least one of them has each "
             "confirmed write, unless it took longer than the timeout. After a "
             "failover to another one a lock may have two holders for a while. "
             "Check tokens at the resource (docs/fencing.md)",
             heard);
    else
        FIND(WARNING, "replication",
             "the server writes a binary log%s. After a failover to a replica "
             "that lacks the last rows a lock may have two holders for a "
             "while. Use semi-synchronous replication, and check tokens at the "
             "resource (docs/fencing.md)",
             *replicas ? " that replicas read" : ", which replicas may read");
    return strcmp(replicas, "0") != 0;
}

static void diagnose_find_engines(struct mysql *m, struct hf__query *q,
                                  const struct my_result *engines)
{
    bool well = true;

    for (const struct my_row *row = engines->rows; row; row = row->next) {
        const char *name = row->value[0].text, *engine = row->value[1].text;

        if (!name || (engine && strcasecmp(engine, "InnoDB") == 0))
            continue;
        well = false;
        FIND(ERROR, "tables",
             "%s has the engine %s, which has no transactions and may lose "
             "rows. Run: alter table `%s`.%s engine=innodb",
             name, engine ? engine : "NULL", m->login.database, name);
    }
    if (well)
        FIND(OK, "tables", "the %zu tables in `%s` are InnoDB",
             engines->rows_len, m->login.database);
}

/* Writes an account in SQL syntax: 'shop'@'%' for shop@%. */
static void diagnose_quote(const char *account, char *to, size_t size)
{
    const char *at = strrchr(account, '@');
    int len = at ? (int)(at - account) : (int)strlen(account);

    snprintf(to, size, "'%.*s'@'%s'", len, account, at ? at + 1 : "%");
}

/* Advises one GRANT for each table that lacks a right. */
static void diagnose_find_rights(struct mysql *m, struct hf__query *q,
                                 const struct my_row *account)
{
    char user[160], text[560] = "";

    diagnose_quote(account->value[0].text ? account->value[0].text : "", user,
                   sizeof(user));
    for (size_t t = 0; t < MY_TABLES; t++) {
        unsigned lacks = (unsigned)(q->token >> (t * RIGHTS)) & 7;
        char list[32];
        size_t n = 0;

        for (size_t r = 0; r < RIGHTS; r++)
            if (lacks & 1u << r)
                n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
                                      n ? ", " : "", rights[r].name);
        if (lacks)
            hf__my_add_grant(text, sizeof(text), t, list, m->login.database,
                             user, (int)strlen(user));
    }
    if (*text)
        FIND(ERROR, "rights", "the user lacks rights. Run: %s", text);
    else if (hf__my_num(account, 1))
        FIND(OK, "rights", "the user has every right that it needs");
    else
        FIND(OK, "rights",
             "the user has every right that locks need. Without PROCESS an "
             "inspection shows only the waiters of this user. If other users "
             "wait too, run: grant process on *.* to %s",
             user);
}

static void diagnose_find_connections(struct mysql *m, struct hf__query *q,
                                      const struct my_result *list,
                                      const struct my_result *status,
                                      const struct my_row *account)
{
    long most = diagnose_number(list, "max_connections");
    long used = diagnose_number(status, "Threads_connected");
    long own_most = diagnose_number(list, "max_user_connections");
    uint64_t processes = hf__my_num(account, 2);
    long own = processes < INT32_MAX ? (long)processes : INT32_MAX;
    bool is_own = own_most && own * most > used * own_most, is_full;
    const char *limit = is_own ? "max_user_connections" : "max_connections";

    /* A larger part of max_user_connections is in use than of
     * max_connections. */
    if (is_own) {
        most = own_most;
        used = own;
    }
    is_full = most && used * 5 > most * 4;
    m->core->find(m->client, q, is_full ? HF_LEVEL_WARNING : HF_LEVEL_OK,
                  "connections",
                  "%ld of %s %ld are used: each client has one, and up to %u "
                  "more while it waits (wait_connections)%s%s",
                  used, limit, most, m->waits_most, is_full ? ". Raise " : "",
                  is_full ? limit : "");
}

static void diagnose_find_settings(struct mysql *m, struct hf__query *q,
                                   const struct my_result *first)
{
    const struct my_result *list = hf__my_at(first, VARIABLES);
    const struct my_result *status = hf__my_at(first, STATUS);
    const struct my_result *account = hf__my_at(first, ACCOUNT);
    bool keeps, fails_over, galera = diagnose_is(list, "wsrep_on", "ON");

    diagnose_find_rights(m, q, account->rows);
    diagnose_find_engines(m, q, hf__my_at(first, ENGINES));
    keeps = diagnose_find_durable(m, q, list);
    if (galera)
        diagnose_find_galera(m, q, status);
    fails_over = (!galera || diagnose_is(list, "log_bin", "ON")) &&
                 diagnose_find_replication(m, q, list, status);
    hf__find_clock(m->core, m->client, q, (int64_t)hf__my_num(first->rows, 0),
                   m->core->now() - q->req.sent_at);
    diagnose_find_connections(m, q, list, status, account->rows);
    FIND(OK, HF__PROMISE,
         MY_PROMISE
         "holds "
         "survive a restart of the server, and a crash of its machine%s; %s",
         q->req.lease_ms / 1000, keeps ? "" : " may forget the last of them",
         fails_over ? "a failover to a replica may let in a second holder"
         : galera
             ? "the other nodes of the Galera cluster know them too"
             : "there is no failover, and no locks while the server is down");
}

static bool diagnose_is_whole(const struct my_result *first)
{
    static const uint32_t columns[ANSWERS] = {1, 2, 2, 2, 3};

    for (size_t i = 0; i < ANSWERS; i++) {
        const struct my_result *r = hf__my_at(first, i);

        if (!r || r->error || r->columns != columns[i])
            return false;
    }
    return hf__my_at(first, ACCOUNT)->rows != NULL;
}

/* Notes the right that was refused, if any, and tests the rights after it. If
 * none is left, sends the statements that read the settings. */
static int diagnose_tried(struct mysql *m, struct hf__query *q,
                          const struct my_answer *a)
{
    const struct my_result *last = a->first;

    for (; last->next; last = last->next)
        if (++q->count >= MY_TABLES * RIGHTS)
            return m->core->why(m->client, HF_EPROTO,
                                "the server sent too many answers");
    if (last->error == MY_FORBIDDEN)
        q->token |= UINT64_C(1) << q->count;
    q->count = last->error ? q->count + 1 : MY_TABLES * RIGHTS;
    return hf__my_resend(m, &q->req);
}

int hf__my_diagnosed(struct mysql *m, struct hf__query *q,
                     const struct my_answer *a)
{
    if (q->count < MY_TABLES * RIGHTS)
        return diagnose_tried(m, q, a);
    FIND(OK, "version", "%s %s", m->cmd.is_mariadb ? "MariaDB" : "MySQL",
         m->cmd.version);
    diagnose_find_waiting(m, q);
    if (diagnose_is_whole(a->first)) {
        diagnose_find_settings(m, q, a->first);
    } else {
        FIND(OK, HF__PROMISE,
             MY_PROMISE "it is not known what a crash of the server loses",
             q->req.lease_ms / 1000);
        FIND(WARNING, "settings",
             "rights, tables, persistence, replication, clock and connections "
             "are not known: %.120s",
             a->last->error ? a->last->text : "an answer we do not understand");
    }
    return HF__DONE;
}
