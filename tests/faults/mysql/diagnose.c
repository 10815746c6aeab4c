/* What hf_diagnose() says of servers that are configured well, and badly. */
#include "mysql_faults.h"

#include "../../../lab/servers/port.h"
#include "../../lib/diagnosis.h"
#include "../../lib/wrong_clock.h"

#define GALERA "/usr/lib/galera/libgalera_smm.so"

static hf_client *client_of(struct world *w)
{
    world_near(w);
    return w->clients[w->len - 1];
}

static void test_diagnose_persistence(void **state)
{
    struct world *w = *state;
    struct my_server disk = {.durable = true};
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "commit is 2");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "may forget");
    my_server_do(&my_one, "set global innodb_flush_log_at_trx_commit=0");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "commit is 0");
    my_server_do(&my_one, "set global innodb_flush_log_at_trx_commit=1");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "nosync");
    my_server_do(&my_one, "set global innodb_flush_log_at_trx_commit=2");
    assert_int_equal(my_server_start(&disk), 0);
    c = my_open(w, disk.url);
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "survive a crash");
    assert_int_equal(diagnosis_count(c, "promise", "may forget"), 0);
    assert_int_equal(hf_close(c), 0);
    my_server_end(&disk);
}

static void test_diagnose_engine(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "tables", "4 tables");
    my_server_do(&my_one, "alter table holdfast_holds engine=myisam");
    diagnosis_says(c, HF_LEVEL_ERROR, "tables",
                   "alter table `" MY_SERVER_DB "`.holdfast_holds");
    assert_int_equal(diagnosis_count(c, "tables", ""), 1);
    my_server_do(&my_one, "alter table holdfast_holds engine=innodb");
    diagnosis_says(c, HF_LEVEL_OK, "tables", "4 tables");
}

/* What is missing is said of all tables at once, as statements that help. */
static void test_diagnose_rights(void **state)
{
    struct world *w = *state;
    hf_error err = HF_ERROR_INIT;
    hf_diagnosis *d = NULL;
    char url[128];
    hf_client *c = client_of(w);

    my_server_do(&my_one, "drop user if exists clerk");
    my_server_do(&my_one, "create user clerk identified by "
                          "'" MY_SERVER_SECRET "'");
    for (int i = 0; i < MY_TABLES; i++)
        my_server_do(&my_one, "grant select%s on %s to clerk",
                     i % 2 ? ", update" : "", my_tables[i]);
    snprintf(url, sizeof(url),
             "mysql://clerk:" MY_SERVER_SECRET "@127.0.0.1:%d/" MY_SERVER_DB,
             my_one.port);
    c = my_open(w, url);
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "denied");
    assert_int_equal(hf_diagnose(c, &d, &err), 0);
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
    my_server_do(&my_one, "grant process on *.* to clerk");
    assert_int_equal(hf_close(c), 0);
    c = my_open(w, url);
    diagnosis_says(c, HF_LEVEL_OK, "rights", "every right that it needs");
    assert_int_equal(hf_close(c), 0);
    my_server_do(&my_one, "drop user clerk");
}

static void test_diagnose_connections(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w), *other = NULL;
    long long most = my_server_number(&my_one, "select @@max_connections");

    diagnosis_says(c, HF_LEVEL_OK, "connections", "max_connections 400");
    my_server_do(&my_one, "grant usage on *.* to " MY_SERVER_USER
                          " with max_user_connections 2");
    other = my_open(w, my_one.url);
    diagnosis_says(other, HF_LEVEL_WARNING, "connections",
                   "Raise max_user_connections");
    my_server_do(&my_one, "grant usage on *.* to " MY_SERVER_USER
                          " with max_user_connections 0");
    assert_int_equal(hf_close(other), 0);
    assert_int_equal(most, 400);
    diagnosis_says(c, HF_LEVEL_OK, "connections", "max_connections 400");
}

static void test_diagnose_clock(void **state)
{
    hf_client *c = client_of(*state);

    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
    clock_is_wrong_by(100);
    diagnosis_says(c, HF_LEVEL_WARNING, "clock", "run NTP");
    clock_is_wrong_by(0);
    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
}

/* With a binary log, without a replica and with one, which may confirm. */
static void test_diagnose_replication(void **state)
{
    struct world *w = *state;
    struct my_server master = {
        .args = {"--log-bin", "--server-id=1", "--sync-binlog=0"}};
    struct my_server replica = {.args = {"--server-id=2"}};
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "replication", "no binary log");
    assert_int_equal(my_server_start(&master), 0);
    assert_int_equal(my_server_start(&replica), 0);
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
    assert_true(WAIT_FOR(diagnosis_count(c, "replication", "failover to a")));
    diagnosis_says(c, HF_LEVEL_WARNING, "replication", "semi-synchronous rep");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "second holder");
    my_server_do(&master, "set global rpl_semi_sync_master_enabled=1");
    my_server_do(&replica, "stop slave io_thread");
    my_server_do(&replica, "start slave io_thread");
    assert_true(
        WAIT_FOR(diagnosis_count(c, "replication", "1 semi-synchronous")));
    my_server_do(&master, "set global innodb_flush_log_at_trx_commit=1");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "sync_binlog");
    my_server_do(&master, "set global binlog_format='STATEMENT'");
    assert_int_equal(hf_close(c), 0);
    c = my_open(w, master.url);
    diagnosis_says(c, HF_LEVEL_ERROR, "replication", "STATEMENT");
    hf_close(c); /* what it has asked for cannot be taken back, either */
    my_server_end(&replica);
    my_server_end(&master);
}

/* A cluster of one node: its provider comes with Debian's mariadb-server. */
static void test_diagnose_galera(void **state)
{
    struct world *w = *state;
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
    assert_int_equal(my_server_start(&node), 0);
    c = my_open(w, node.url);
    diagnosis_says(c, HF_LEVEL_WARNING, "galera", "a Galera cluster of 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "waiting", "Galera");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "Galera");
    diagnosis_lacks(c, "replication");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    assert_int_equal(hf_close(c), 0);
    my_server_end(&node);
    close(fd);
}

int run_diagnose_faults(void)
{
    const struct CMUnitTest tests[] = {
        MY_CASE(test_diagnose_persistence), MY_CASE(test_diagnose_engine),
        MY_CASE(test_diagnose_rights),      MY_CASE(test_diagnose_connections),
        MY_CASE(test_diagnose_clock),       MY_CASE(test_diagnose_replication),
        MY_CASE(test_diagnose_galera),
    };

    return cmocka_run_group_tests_name("mysql: diagnosis", tests, my_group,
                                       my_group_end);
}
