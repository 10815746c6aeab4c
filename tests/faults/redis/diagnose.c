/* What hf_diagnose() says of servers that are configured well, and badly. */
#include "redis_faults.h"

#include "../../lib/diagnosis.h"
#include "../../lib/wrong_clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hf_client *client_of(struct world *w)
{
    world_near(w);
    return w->clients[w->len - 1];
}

static void test_diagnose_eviction(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "eviction", "maxmemory is not set");
    redis_server_do(w->redis, "CONFIG SET maxmemory 1gb");
    diagnosis_says(c, HF_LEVEL_OK, "eviction", "noeviction");
    redis_server_do(w->redis, "CONFIG SET maxmemory-policy volatile-lru");
    diagnosis_says(c, HF_LEVEL_ERROR, "eviction",
                   "Set maxmemory-policy noeviction");
    redis_server_do(w->redis, "CONFIG SET maxmemory-policy noeviction");
    redis_server_do(w->redis, "CONFIG SET maxmemory 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "eviction", "raise maxmemory");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "OOM");
    redis_server_do(w->redis, "CONFIG SET maxmemory 0");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    diagnosis_says(c, HF_LEVEL_OK, "version", "Redis");
}

static void test_diagnose_persistence(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "every hold");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "forgets every hold");
    redis_server_do(w->redis, "CONFIG SET save %s", "3600 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "last snapshot");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "last snapshot");
    redis_server_do(w->redis, "CONFIG SET appendonly yes");
    redis_server_do(w->redis, "CONFIG SET appendfsync everysec");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "everysec");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "forgets the last holds");
    redis_server_do(w->redis, "CONFIG SET appendfsync always");
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "always");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "holds survive");
}

static long long uptime_s(struct world *w)
{
    redisReply *info = redis_server_ask(w->redis, "INFO server");
    const char *at = strstr(info->str, "uptime_in_seconds:");
    long long s = at ? atoll(at + strlen("uptime_in_seconds:")) : -1;

    freeReplyObject(info);
    return s;
}

/* It has just been started, and has forgotten what it had: until it keeps what
 * it has, or has been up for longer than the TTL. */
static void test_diagnose_restart(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;

    opt.ttl_ms = 3600000;
    assert_int_equal(hf_open(w->redis->url, &opt, &c, &w->err), 0);
    diagnosis_says(c, HF_LEVEL_WARNING, "restart", "was started");
    redis_server_do(w->redis, "CONFIG SET appendonly yes");
    diagnosis_lacks(c, "restart");
    redis_server_do(w->redis, "CONFIG SET appendonly no");
    assert_int_equal(hf_close(c), 0);
    opt.ttl_ms = HF_LEASE_MIN_MS;
    assert_int_equal(hf_open(w->redis->url, &opt, &c, &w->err), 0);
    assert_true(WAIT_FOR(uptime_s(w) * 1000 >= HF_LEASE_MIN_MS));
    diagnosis_lacks(c, "restart");
    assert_int_equal(hf_close(c), 0);
}

static void test_diagnose_snapshot_fails(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);
    char path[128];

    snprintf(path, sizeof(path), "%s/dump.rdb", w->redis->dir);
    diagnosis_lacks(c, "disk");
    assert_int_equal(mkdir(path, 0700), 0); /* rename() fails */
    redis_server_do(w->redis, "BGSAVE");
    assert_true(WAIT_FOR(diagnosis_count(c, "disk", "snapshot") == 1));
    assert_int_equal(rmdir(path), 0);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "BGSAVE") != -1));
    assert_true(WAIT_FOR(diagnosis_count(c, "disk", "") == 0));
}

static void test_diagnose_clients(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "connections", "connected");
    redis_server_do(w->redis, "CONFIG SET maxclients 2");
    diagnosis_says(c, HF_LEVEL_WARNING, "connections", "Raise maxclients");
    redis_server_do(w->redis, "CONFIG SET maxclients 1000");
    diagnosis_says(c, HF_LEVEL_OK, "connections", "1000");
}

static void test_diagnose_watching(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);

    redis_server_do(w->redis, "CONFIG SET notify-keyspace-events K$");
    diagnosis_says(c, HF_LEVEL_OK, "watching", "set it to KA");
    redis_server_do(w->redis, "CONFIG SET notify-keyspace-events KA");
    diagnosis_says(c, HF_LEVEL_OK, "watching", "can be watched");
}

static void diagnose_with(struct world *w, const char *options,
                          enum hf_level level, const char *word)
{
    hf_client *c = NULL;
    char url[128];

    snprintf(url, sizeof(url), "%s%s", w->redis->url, options);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), 0);
    diagnosis_says(c, level, "replication", word);
    assert_int_equal(hf_close(c), 0);
}

static void test_diagnose_replicas(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w), *of_replica = NULL;
    char port[16];
    struct redis_server replica = {
        .args = {"--replicaof", "127.0.0.1", port, NULL}};

    diagnosis_says(c, HF_LEVEL_OK, "replication", "without replicas");
    snprintf(port, sizeof(port), "%d", w->redis->port);
    assert_int_equal(redis_server_start(&replica), 0);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "WAIT 1 100") == 1));
    diagnosis_says(c, HF_LEVEL_WARNING, "replication",
                   "Set min-replicas-to-write");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "may let in a second holder");
    redis_server_do(w->redis, "CONFIG SET min-replicas-to-write 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "replication",
                   "set replicas=1 in the URL");
    assert_int_equal(diagnosis_count(c, "replication", "Set min-replicas"), 0);
    redis_server_do(w->redis, "CONFIG SET min-replicas-to-write 0");
    diagnose_with(w, "?replicas=1", HF_LEVEL_WARNING,
                  "1 of 1 replicas confirm");
    diagnose_with(w, "?replicas=2", HF_LEVEL_ERROR,
                  "replicas=2, and 1 are connected");
    assert_int_equal(hf_open(replica.url, NULL, &of_replica, &w->err), 0);
    diagnosis_says(of_replica, HF_LEVEL_ERROR, "replication", port);
    diagnosis_says(of_replica, HF_LEVEL_ERROR, "locking", "replica");
    assert_int_equal(hf_close(of_replica), 0);
    redis_server_end(&replica);
}

static void set_user(struct world *w, const char *more)
{
    redis_server_do(w->redis,
                    "ACL SETUSER worker reset on >secret ~* &* +@all -info "
                    "-config %s",
                    more);
}

/* What may not be read is a finding, and so is a lock that may not be taken. */
static void test_diagnose_rights(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;
    char url[128];

    redis_server_do(w->redis, "CONFIG SET appendonly yes");
    redis_server_do(w->redis, "CONFIG SET appendfsync everysec");
    set_user(w, "+ping");
    snprintf(url, sizeof(url), "redis://worker:secret@127.0.0.1:%d",
             w->redis->port);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), 0);
    diagnosis_says(c, HF_LEVEL_WARNING, "settings", "+info");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    redis_server_do(w->redis, "ACL SETUSER worker +info");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "+config|get");
    redis_server_do(w->redis, "ACL SETUSER worker +config|get");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "everysec");
    diagnosis_says(c, HF_LEVEL_OK, "rights", "worker has every right");
    redis_server_do(w->redis, "ACL SETUSER worker -hset -zadd");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "cannot be acquired");
    diagnosis_says(c, HF_LEVEL_ERROR, "rights",
                   "ACL SETUSER worker +hset +zadd");
    redis_server_do(w->redis, "ACL SETUSER worker +hset +zadd -pubsub -scan");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights", " +pubsub|numsub");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights", " +scan");
    redis_server_do(w->redis, "ACL SETUSER worker +pubsub +scan resetkeys "
                              "~holdfast-*");
    diagnosis_says(c, HF_LEVEL_ERROR, "rights", "ACL SETUSER worker ~*");
    redis_server_do(w->redis, "ACL SETUSER worker ~* resetchannels");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights", "waiters poll");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights",
                   "ACL SETUSER worker &redisson_lock__channel:* ");
    redis_server_do(w->redis, "ACL SETUSER worker &*");
    diagnosis_says(c, HF_LEVEL_OK, "rights", "worker has every right");
    redis_server_do(w->redis, "ACL SETUSER worker -eval");
    diagnosis_says(c, HF_LEVEL_ERROR, "rights", "'eval'");
    assert_int_equal(hf_close(c), 0);
}

static void test_diagnose_clock(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
    clock_is_wrong_by(100);
    diagnosis_says(c, HF_LEVEL_WARNING, "clock", "run NTP");
    clock_is_wrong_by(-100);
    diagnosis_says(c, HF_LEVEL_WARNING, "clock", "run NTP");
    clock_is_wrong_by(0);
    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
}

/* The server refuses everything for a while: what it says is shown, and not
 * taken for a right that is missing. */
static void test_diagnose_busy(void **state)
{
    struct world *w = *state;
    hf_client *c = client_of(w);
    redisContext *other = redisConnectUnix(w->redis->socket);
    int done = 0;

    assert_non_null(other);
    redis_server_do(w->redis, "CONFIG SET lua-time-limit 1");
    assert_int_equal(redisAppendCommand(other, "EVAL %s 0", "while 1 do end"),
                     REDIS_OK);
    while (!done)
        assert_int_equal(redisBufferWrite(other, &done), REDIS_OK);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "PING") == -1));
    diagnosis_says(c, HF_LEVEL_WARNING, "settings", "BUSY");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "BUSY");
    assert_int_equal(redis_server_do(w->redis, "SCRIPT KILL"), 0);
    redisFree(other);
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
}

/* A server that is slow beside the TTL. */
static void test_diagnose_latency(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;

    opt.ttl_ms = 6000;
    opt.op_timeout_ms = 10000;
    proxy_set(w->proxy, PROXY_DELAY, 1000);
    assert_int_equal(hf_open(w->far_url, &opt, &c, &w->err), 0);
    diagnosis_says(c, HF_LEVEL_ERROR, "latency", "longer ttl");
    assert_int_equal(hf_close(c), 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
    opt.ttl_ms = 3600000;
    assert_int_equal(hf_open(w->far_url, &opt, &c, &w->err), 0);
    diagnosis_says(c, HF_LEVEL_OK, "latency", "3600000");
    assert_int_equal(hf_close(c), 0);
}

int run_diagnose_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_diagnose_eviction),       T(test_diagnose_persistence),
        T(test_diagnose_replicas),       T(test_diagnose_rights),
        T(test_diagnose_clock),          T(test_diagnose_busy),
        T(test_diagnose_latency),        T(test_diagnose_restart),
        T(test_diagnose_watching),       T(test_diagnose_clients),
        T(test_diagnose_snapshot_fails),
    };

    return cmocka_run_group_tests_name("redis: diagnosis", tests, NULL, NULL);
}
