/* What the server says of itself: variables and status. Each is a finding. */
#include "mysql.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOCK_MS 1000 /* so far the clocks may be apart */

#define FIND(level, subject, ...)                                              \
    m->core->find(m->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

void hf__my_diagnose_put(struct mysql *m)
{
    hf__my_sql(&m->cmd,
               "select " MY_CLOCK ";show variables where variable_name in "
               "('innodb_flush_log_at_trx_commit','log_bin','binlog_format',"
               "'max_connections');"
               "show status where variable_name='Threads_connected'");
}

static const char *value_of(const struct my_result *list, const char *name)
{
    for (const struct my_row *row = list->rows; row; row = row->next)
        if (row->value[0].text && !strcmp(row->value[0].text, name))
            return row->value[1].text ? row->value[1].text : "";
    return "";
}

static void find_clock(struct mysql *m, struct hf__query *q, uint64_t us)
{
    long long trip = (m->core->now() - q->req.sent_at) / HF__MS, apart;
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    apart = llabs(t.tv_sec * 1000LL + t.tv_nsec / 1000000 - trip / 2 -
                  (long long)(us / 1000));
    if (apart > CLOCK_MS + trip)
        FIND(WARNING, "clock",
             "the server's clock and ours are %lld ms apart. Leases go by the "
             "server's clock alone, but it must not jump: run NTP on both "
             "machines",
             apart);
    else
        FIND(OK, "clock", "the server's clock and ours are %lld ms apart",
             apart);
}

static void find_waiting(struct mysql *m, struct hf__query *q)
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

static void find_durable(struct mysql *m, struct hf__query *q,
                         const struct my_result *list)
{
    const char *flush = value_of(list, "innodb_flush_log_at_trx_commit");

    if (strcmp(flush, "1") == 0)
        FIND(OK, "persistence",
             "innodb_flush_log_at_trx_commit is 1: holds and tokens survive a "
             "crash of the machine");
    else
        FIND(WARNING, "persistence",
             "innodb_flush_log_at_trx_commit is %s: a crash of the machine "
             "forgets the last holds and tokens. Set it to 1",
             *flush ? flush : "not known");
}

static void find_replication(struct mysql *m, struct hf__query *q,
                             const struct my_result *list)
{
    if (strcmp(value_of(list, "log_bin"), "ON") == 0 &&
        strcmp(value_of(list, "binlog_format"), "STATEMENT") == 0)
        FIND(ERROR, "replication",
             "binlog_format is STATEMENT, which READ COMMITTED does not allow: "
             "no lock can be acquired. Set binlog_format to MIXED or ROW");
    else if (strcmp(value_of(list, "log_bin"), "ON") == 0)
        FIND(WARNING, "replication",
             "the server writes a binary log. If it has replicas: after a "
             "failover to one that lacks the last rows a lock may have two "
             "holders for a while. Check tokens at the resource "
             "(docs/fencing.md)");
    else
        FIND(OK, "replication",
             "no binary log: no replicas, no failover, and no locks while the "
             "server is down");
}

static void find_connections(struct mysql *m, struct hf__query *q,
                             const struct my_result *list,
                             const struct my_result *status)
{
    long most = strtol(value_of(list, "max_connections"), NULL, 10);
    long used = strtol(value_of(status, "Threads_connected"), NULL, 10);

    if (most && used > most - most / 5)
        FIND(WARNING, "connections",
             "%ld of max_connections %ld are used: each client has one, and "
             "one more for each name that it waits for. Raise max_connections",
             used, most);
    else
        FIND(OK, "connections", "%ld of max_connections %ld are used", used,
             most);
}

void hf__my_diagnosed(struct mysql *m, struct hf__query *q,
                      const struct my_result *first)
{
    const struct my_result *list = hf__my_at(first, 1);
    const struct my_result *status = hf__my_at(first, 2);
    const struct my_result *last = hf__my_last(first);

    FIND(OK, "version", "%s %s", m->cmd.is_mariadb ? "MariaDB" : "MySQL",
         m->cmd.version);
    find_waiting(m, q);
    if (last->error || !status || list->columns != 2 || status->columns != 2) {
        FIND(WARNING, "settings",
             "clock, persistence, replication and connections are not known: "
             "%.120s",
             last->error ? last->text : "an answer we do not understand");
        return;
    }
    find_clock(m, q, hf__my_num(first->rows, 0));
    find_durable(m, q, list);
    find_replication(m, q, list);
    find_connections(m, q, list, status);
}
