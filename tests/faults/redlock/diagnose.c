/* What hf_diagnose() reports about five servers. */
#include "redlock_faults.h"

#include "../../lib/diagnosis.h"

GROUP("diagnose");

static hf_client *open_with(struct world *w, const char *options,
                            int64_t op_timeout_ms)
{
    char url[300];

    redlock_servers_url(&five, url, sizeof(url), options);
    return world_open(w, url, CLIENT(.op_timeout_ms = op_timeout_ms));
}

CASE(test_diagnose_settings)
{
    hf_client *c = open_with(w, PATIENT, 0);

    diagnosis_says(c, HF_LEVEL_OK, "promise", "3 of 5 servers");
    diagnosis_says(c, HF_LEVEL_OK, "servers", "of which 2 may be down");
    diagnosis_says(c, HF_LEVEL_WARNING, "independence", "on host 127.0.0.1");
    diagnosis_says(c, HF_LEVEL_OK, "version", "");
    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    diagnosis_says(c, HF_LEVEL_OK, "eviction", "nothing");
    do_at(2, "CONFIG SET maxmemory-policy allkeys-lru");
    do_at(2, "CONFIG SET maxmemory 1gb");
    diagnosis_says(c, HF_LEVEL_ERROR, "eviction", "allkeys-lru");
    assert_int_equal(diagnosis_count(c, "eviction", ""), 1);
    do_at(2, "CONFIG SET maxmemory 0");
    diagnosis_says(c, HF_LEVEL_OK, "eviction", "nothing");
}

static void append_only(const char *is)
{
    for (int i = 0; i < SERVERS; i++)
        do_at(i, "CONFIG SET appendonly %s", is);
}

CASE(test_diagnose_persistence)
{
    hf_client *c = open_with(w, "max_lease=0&" PATIENT, 0);

    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "off at 5 of 5");
    append_only("yes");
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "on at all servers");
    world_ends(w, c);
    append_only("no");
    c = open_with(w, "max_lease=1h&" PATIENT, 1000);
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "no vote for 3600 s");
    diagnosis_says(c, HF_LEVEL_ERROR, "servers", "started recently");
}

CASE(test_diagnose_replicas)
{
    hf_client *c = open_with(w, PATIENT, 0);

    diagnosis_says(c, HF_LEVEL_OK, "replication", "no server has");
    do_at(1, "REPLICAOF 127.0.0.1 %d", SERVER(0)->port);
    COMES(diagnosis_count(c, "replication", "has replicas") == 1);
    diagnosis_says(c, HF_LEVEL_ERROR, "replication", "is a replica");
    diagnosis_says(c, HF_LEVEL_WARNING, "replication", "has replicas");
    do_at(1, "REPLICAOF NO ONE");
    COMES(diagnosis_count(c, "replication", "no server has") == 1);
}

/* Servers are stopped or killed: the findings come from the servers that
 * answer. */
CASE(test_diagnose_servers_down)
{
    hf_client *c = open_with(w, "server_timeout=300ms", 4000);

    diagnosis_says(c, HF_LEVEL_OK, "servers", "5 servers answer");
    OK(redis_server_stop(SERVER(0)));
    diagnosis_says(c, HF_LEVEL_WARNING, "servers", "4 of 5 servers");
    redis_server_kill(SERVER(1));
    diagnosis_says(c, HF_LEVEL_WARNING, "servers", "3 of 5 servers");
    redis_server_kill(SERVER(2));
    diagnosis_says(c, HF_LEVEL_ERROR, "servers", "2 of 5 servers");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "");
    OK(redlock_servers_heal(&five));
    COMES(diagnosis_count(c, "servers", "5 servers answer") == 1);
}

/* hf_open() returns when a majority is connected; the diagnosis still waits for
 * the last server. */
CASE(test_diagnose_waits_for_the_last)
{
    hf_client *c;

    proxy_set(way[4], PROXY_DELAY, 300);
    c = world_open(w, far_url("server_timeout=50ms"),
                   CLIENT(.op_timeout_ms = 20000));
    diagnosis_says(c, HF_LEVEL_OK, "servers", "5 servers answer");
    diagnosis_says(c, HF_LEVEL_OK, "version", "all servers");
    world_ends(w, c);
    heal_all();
}

/* The diagnosis ends before any server has answered; its replies arrive
 * later. */
CASE(test_diagnose_without_time)
{
    hf_client *c = NULL;

    OK(proc_open(w->near_url, CLIENT(.op_timeout_ms = 1), &c, &w->err));
    for (int i = 0; i < 20; i++) {
        hf_diagnosis *d = NULL;

        if (!hf_diagnose(c, &d, NULL))
            hf_diagnosis_free(d);
    }
    hf_close(c); /* the client is closed before the replies arrive */
}
