/* What hf_diagnose() reports about servers that are configured well or
 * badly. */
#include "mysql_faults.h"

#include "../../../lab/servers/port.h"
#include "../../lib/diagnosis.h"
#include "../../lib/wrong_clock.h"

GROUP("diagnose");

#define GALERA "/usr/lib/galera/libgalera_smm.so"

static hf_client *client_of(struct world *w)
{
    world_near(w);
    return w->clients[w->len - 1];
}

CASE(test_diagnose_persistence)
{
    struct my_server disk = {.durable = true};
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "commit is 2");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "may forget");
    my_do("set global innodb_flush_log_at_trx_commit=0");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "commit is 0");
    my_do("set global innodb_flush_log_at_trx_commit=1");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "nosync");
    my_do("set global innodb_flush_log_at_trx_commit=2");
    OK(my_server_start(&disk));
    c = my_open(w, disk.url);
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "survive a crash");
    assert_int_equal(diagnosis_count(c, "promise", "may forget"), 0);
    world_ends(w, c);
    my_server_end(&disk);
}

CASE(test_diagnose_engine)
{
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "tables", "4 tables");
    my_do("alter table holdfast_holds engine=myisam");
    diagnosis_says(c, HF_LEVEL_ERROR, "tables",
                   "alter table `" MY_SERVER_DB "`.holdfast_holds");
    assert_int_equal(diagnosis_count(c, "tables", ""), 1);
    my_do("alter table holdfast_holds engine=innodb");
    diagnosis_says(c, HF_LEVEL_OK, "tables", "4 tables");
}

/* All missing rights on tables are reported at once, as the statements that
 * grant them. */
CASE(test_diagnose_rights)
{
    hf_error err = HF_ERROR_INIT;
    hf_diagnosis *d = NULL;
    const char *url;
    hf_client *c = client_of(w);

    my_do("drop user if exists clerk");
    my_do("create user clerk identified by '" MY_SERVER_SECRET "'");
    for (int i = 0; i < MY_TABLES; i++)
        my_do("grant select%s on %s to clerk", i % 2 ? ", update" : "",
              my_tables[i]);
    url =
        text_of("mysql://clerk:" MY_SERVER_SECRET "@127.0.0.1:%d/" MY_SERVER_DB,
                my_one.port);
    c = my_open(w, url);
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "denied");
    OK(hf_diagnose(c, &d, &err));
    for (size_t i = 0; i < d->len; i++) {
        char *sql = strstr(d->findings[i].text, "Run: "), *next;

        if (strcmp(d->findings[i].subject, "rights") != 0)
            continue;
        assert_int_equal(d->findings[i].level, HF_LEVEL_ERROR);
        assert_non_null(sql);
        for (sql += 5; sql; sql = next) {
            next = strstr(sql, "; ");
            if (next)
                *next = '\0';
            assert_int_equal(my_server_try(&my_one, "%s", sql), 0);
            next = next ? next + 2 : NULL;
        }
    }
    hf_diagnosis_free(d);
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    diagnosis_says(c, HF_LEVEL_OK, "rights", "grant process on *.*");
    my_do("grant process on *.* to clerk");
    world_ends(w, c);
    c = my_open(w, url);
    diagnosis_says(c, HF_LEVEL_OK, "rights", "every right that it needs");
    my_do("drop user clerk");
}

CASE(test_diagnose_connections)
{
    hf_client *c = client_of(w), *other = NULL;
    long long most = my_number("select @@max_connections");

    diagnosis_says(c, HF_LEVEL_OK, "connections", "max_connections 400");
    my_do("grant usage on *.* to " MY_SERVER_USER
          " with max_user_connections 2");
    other = my_open(w, my_one.url);
    diagnosis_says(other, HF_LEVEL_WARNING, "connections",
                   "Raise max_user_connections");
    my_do("grant usage on *.* to " MY_SERVER_USER
          " with max_user_connections 0");
    world_ends(w, other);
    assert_int_equal(most, 400);
    diagnosis_says(c, HF_LEVEL_OK, "connections", "max_connections 400");
}

CASE(test_diagnose_clock)
{
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
    clock_is_wrong_by(100);
    diagnosis_says(c, HF_LEVEL_WARNING, "clock", "run NTP");
    clock_is_wrong_by(0);
    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
}

/* What hf_diagnose() reports about a server without a binary log, a server with
 * a log but without a replica, and a server whose replica does or does not
 * confirm writes. */
CASE(test_diagnose_replication)
{
    struct my_server master = {
        .args = {"--log-bin", "--server-id=1", "--sync-binlog=0"}};
    struct my_server replica = {.args = {"--server-id=2"}};
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "replication", "no binary log");
    OK(my_server_start(&master));
    OK(my_server_start(&replica));
    c = my_open(w, master.url);
    diagnosis_says(c, HF_LEVEL_OK, "replication", "no replica is connected");
    my_server_do(&master, "create user copy identified by 'copy'");
    my_server_do(&master, "grant replication slave on *.* to copy");
    my_server_do(&replica,
                 "change master to master_host='127.0.0.1',master_port=%d,"
                 "master_user='copy',master_password='copy'",
                 master.port);
    my_server_do(&replica, "set global rpl_semi_sync_slave_enabled=1");
    my_server_do(&replica, "start slave io_thread");
    COMES(diagnosis_count(c, "replication", "failover to a"));
    diagnosis_says(c, HF_LEVEL_WARNING, "replication", "semi-synchronous rep");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "second holder");
    my_server_do(&master, "set global rpl_semi_sync_master_enabled=1");
    my_server_do(&replica, "stop slave io_thread");
    my_server_do(&replica, "start slave io_thread");
    COMES(diagnosis_count(c, "replication", "1 semi-synchronous"));
    my_server_do(&master, "set global innodb_flush_log_at_trx_commit=1");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "sync_binlog");
    my_server_do(&master, "set global binlog_format='STATEMENT'");
    world_ends(w, c);
    OK(proc_open(master.url, NULL, &c, &w->err));
    diagnosis_says(c, HF_LEVEL_ERROR, "replication", "STATEMENT");
    hf_close(c); /* may fail: with this format the server refuses writes */
    my_server_end(&replica);
    my_server_end(&master);
}

/* A cluster of one node; its provider comes with Debian's mariadb-server. */
CASE(test_diagnose_galera)
{
    char options[128], provider[] = "--wsrep-provider=" GALERA;
    struct my_server node = {
        .args = {"--wsrep-on=1", provider, "--wsrep-cluster-address=gcomm://",
                 "--binlog-format=ROW", "--wsrep-node-address=127.0.0.1",
                 options}};
    hf_client *c = client_of(w);
    int port = 0, fd = port_reserve(&port);

    diagnosis_lacks(c, "galera");
    assert_true(fd >= 0);
    snprintf(options, sizeof(options),
             "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d;"
             "gcache.size=1M",
             port);
    OK(my_server_start(&node));
    c = my_open(w, node.url);
    diagnosis_says(c, HF_LEVEL_WARNING, "galera", "a Galera cluster of 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "waiting", "Galera");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "Galera");
    diagnosis_lacks(c, "replication");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    world_ends(w, c);
    my_server_end(&node);
    close(fd);
}
