/* What hf_diagnose() says of five servers. */
#include "redlock_faults.h"

#include "../../lib/diagnosis.h"

static hf_client *open_with(struct world *w, const char *options,
                            int64_t op_timeout_ms)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    char url[300];

    opt.op_timeout_ms = op_timeout_ms;
    redlock_servers_url(&five, url, sizeof(url), options);
    if (proc_open(url, &opt, &c, &w->err))
        fail_msg("%s", w->err.text);
    return c;
}

static void test_diagnose_settings(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, PATIENT, 0);

    diagnosis_says(c, HF_LEVEL_OK, "promise", "3 of 5 servers");
    diagnosis_says(c, HF_LEVEL_OK, "servers", "of which 2 may be down");
    diagnosis_says(c, HF_LEVEL_WARNING, "independence", "on host 127.0.0.1");
    diagnosis_says(c, HF_LEVEL_OK, "version", "");
    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    diagnosis_says(c, HF_LEVEL_OK, "eviction", "nothing");
    redis_server_do(SERVER(2), "CONFIG SET maxmemory-policy allkeys-lru");
    redis_server_do(SERVER(2), "CONFIG SET maxmemory 1gb");
    diagnosis_says(c, HF_LEVEL_ERROR, "eviction", "allkeys-lru");
    assert_int_equal(diagnosis_count(c, "eviction", ""), 1);
    redis_server_do(SERVER(2), "CONFIG SET maxmemory 0");
    diagnosis_says(c, HF_LEVEL_OK, "eviction", "nothing");
    assert_int_equal(hf_close(c), 0);
}

static void append_only(const char *is)
{
    for (int i = 0; i < SERVERS; i++)
        redis_server_do(SERVER(i), "CONFIG SET appendonly %s", is);
}

static void test_diagnose_persistence(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, "max_lease=0&" PATIENT, 0);

    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "off at 5 of 5");
    append_only("yes");
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "on at all servers");
    assert_int_equal(hf_close(c), 0);
    append_only("no");
    c = open_with(w, "max_lease=1h&" PATIENT, 1000);
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "no vote for 3600 s");
    diagnosis_says(c, HF_LEVEL_ERROR, "servers", "started recently");
    assert_int_equal(hf_close(c), 0);
}

static void test_diagnose_replicas(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, PATIENT, 0);

    diagnosis_says(c, HF_LEVEL_OK, "replication", "no server has");
    redis_server_do(SERVER(1), "REPLICAOF 127.0.0.1 %d", SERVER(0)->port);
    assert_true(
        WAIT_FOR(diagnosis_count(c, "replication", "has replicas") == 1));
    diagnosis_says(c, HF_LEVEL_ERROR, "replication", "is a replica");
    diagnosis_says(c, HF_LEVEL_WARNING, "replication", "has replicas");
    redis_server_do(SERVER(1), "REPLICAOF NO ONE");
    assert_true(
        WAIT_FOR(diagnosis_count(c, "replication", "no server has") == 1));
    assert_int_equal(hf_close(c), 0);
}

/* One that is stopped, and one that is gone: what the others say is found. */
static void test_diagnose_servers_down(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, "server_timeout=300ms", 4000);

    diagnosis_says(c, HF_LEVEL_OK, "servers", "5 servers answer");
    assert_int_equal(redis_server_stop(SERVER(0)), 0);
    diagnosis_says(c, HF_LEVEL_WARNING, "servers", "4 of 5 servers");
    redis_server_kill(SERVER(1));
    diagnosis_says(c, HF_LEVEL_WARNING, "servers", "3 of 5 servers");
    redis_server_kill(SERVER(2));
    diagnosis_says(c, HF_LEVEL_ERROR, "servers", "2 of 5 servers");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "");
    assert_int_equal(redlock_servers_heal(&five), 0);
    assert_true(
        WAIT_FOR(diagnosis_count(c, "servers", "5 servers answer") == 1));
    assert_int_equal(hf_close(c), 0);
}

/* A client is open when the majority is there; the last may come later. */
static void test_diagnose_waits_for_the_last(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;

    opt.op_timeout_ms = 20000;
    proxy_set(way[4], PROXY_DELAY, 300);
    if (proc_open(far_url("server_timeout=50ms"), &opt, &c, &w->err))
        fail_msg("%s", w->err.text);
    diagnosis_says(c, HF_LEVEL_OK, "servers", "5 servers answer");
    diagnosis_says(c, HF_LEVEL_OK, "version", "all servers");
    assert_int_equal(hf_close(c), 0);
    heal_all();
}

/* It is over before a server has answered; the answers come all the same. */
static void test_diagnose_without_time(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, PATIENT, 1);

    for (int i = 0; i < 20; i++) {
        hf_diagnosis *d = NULL;

        if (!hf_diagnose(c, &d, NULL))
            hf_diagnosis_free(d);
    }
    hf_close(c); /* without time for an answer */
}

int run_diagnose_faults(void)
{
    const struct CMUnitTest tests[] = {
        FAULT(test_diagnose_settings),
        FAULT(test_diagnose_persistence),
        FAULT(test_diagnose_replicas),
        FAULT(test_diagnose_servers_down),
        FAULT(test_diagnose_waits_for_the_last),
        FAULT(test_diagnose_without_time),
    };

    return cmocka_run_group_tests_name("redlock: diagnosis", tests, group_begin,
                                       group_end);
}
