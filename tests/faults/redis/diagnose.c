/* What hf_diagnose() reports about servers that are configured well or
 * badly. */
#include "redis_faults.h"

#include "../../lib/diagnosis.h"
#include "../../lib/wrong_clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

GROUP("diagnose");

static hf_client *client_of(struct world *w)
{
    world_near(w);
    return w->clients[w->len - 1];
}

CASE(test_diagnose_eviction)
{
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "eviction", "maxmemory is not set");
    redis_do(w, "CONFIG SET maxmemory 1gb");
    diagnosis_says(c, HF_LEVEL_OK, "eviction", "noeviction");
    redis_do(w, "CONFIG SET maxmemory-policy volatile-lru");
    diagnosis_says(c, HF_LEVEL_ERROR, "eviction",
                   "Set maxmemory-policy noeviction");
    redis_do(w, "CONFIG SET maxmemory-policy noeviction");
    redis_do(w, "CONFIG SET maxmemory 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "eviction", "raise maxmemory");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "OOM");
    redis_do(w, "CONFIG SET maxmemory 0");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    diagnosis_says(c, HF_LEVEL_OK, "version", "Redis");
}

CASE(test_diagnose_persistence)
{
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "every hold");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "forgets every hold");
    redis_do(w, "CONFIG SET save %s", "3600 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "last snapshot");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "last snapshot");
    redis_do(w, "CONFIG SET appendonly yes");
    redis_do(w, "CONFIG SET appendfsync everysec");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "everysec");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "forgets the last holds");
    redis_do(w, "CONFIG SET appendfsync always");
    diagnosis_says(c, HF_LEVEL_OK, "persistence", "always");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "holds survive");
}

static long long uptime_s(struct world *w)
{
    redisReply *info = redis_ask(w, "INFO server");
    const char *at = strstr(info->str, "uptime_in_seconds:");
    long long s = at ? atoll(at + strlen("uptime_in_seconds:")) : -1;

    freeReplyObject(info);
    return s;
}

/* A server without persistence has just started, so it has lost all holds. The
 * warning ends when persistence is on or the server has been up for longer than
 * the TTL. */
CASE(test_diagnose_restart)
{
    hf_client *c = world_open(w, w->redis->url, CLIENT(.ttl_ms = 3600000));

    diagnosis_says(c, HF_LEVEL_WARNING, "restart", "was started");
    redis_do(w, "CONFIG SET appendonly yes");
    diagnosis_lacks(c, "restart");
    redis_do(w, "CONFIG SET appendonly no");
    c = world_open(w, w->redis->url, CLIENT(.ttl_ms = HF_LEASE_MIN_MS));
    COMES(uptime_s(w) * 1000 >= HF_LEASE_MIN_MS);
    diagnosis_lacks(c, "restart");
}

CASE(test_diagnose_snapshot_fails)
{
    hf_client *c = client_of(w);
    const char *path = text_of("%s/dump.rdb", w->redis->dir);

    diagnosis_lacks(c, "disk");
    assert_int_equal(mkdir(path, 0700), 0); /* lets rename() fail */
    redis_do(w, "BGSAVE");
    COMES(diagnosis_count(c, "disk", "snapshot") == 1);
    assert_int_equal(rmdir(path), 0);
    COMES(redis_do(w, "BGSAVE") != -1);
    COMES(diagnosis_count(c, "disk", "") == 0);
}

CASE(test_diagnose_clients)
{
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "connections", "connected");
    redis_do(w, "CONFIG SET maxclients 2");
    diagnosis_says(c, HF_LEVEL_WARNING, "connections", "Raise maxclients");
    redis_do(w, "CONFIG SET maxclients 1000");
    diagnosis_says(c, HF_LEVEL_OK, "connections", "1000");
}

CASE(test_diagnose_watching)
{
    hf_client *c = client_of(w);

    redis_do(w, "CONFIG SET notify-keyspace-events K$");
    diagnosis_says(c, HF_LEVEL_OK, "watching", "set it to KA");
    redis_do(w, "CONFIG SET notify-keyspace-events KA");
    diagnosis_says(c, HF_LEVEL_OK, "watching", "can be watched");
}

static void diagnose_with(struct world *w, const char *options,
                          enum hf_level level, const char *word)
{
    hf_client *c = world_open(w, text_of("%s%s", w->redis->url, options), NULL);

    diagnosis_says(c, level, "replication", word);
}

CASE(test_diagnose_replicas)
{
    hf_client *c = client_of(w), *of_replica;
    struct redis_server replica = {
        .args = {"--replicaof", "127.0.0.1", text_of("%d", w->redis->port)}};

    diagnosis_says(c, HF_LEVEL_OK, "replication", "without replicas");
    OK(redis_server_start(&replica));
    COMES(redis_do(w, "WAIT 1 100") == 1);
    diagnosis_says(c, HF_LEVEL_WARNING, "replication",
                   "Set min-replicas-to-write");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "may let in a second holder");
    redis_do(w, "CONFIG SET min-replicas-to-write 1");
    diagnosis_says(c, HF_LEVEL_WARNING, "replication",
                   "set replicas=1 in the URL");
    assert_int_equal(diagnosis_count(c, "replication", "Set min-replicas"), 0);
    redis_do(w, "CONFIG SET min-replicas-to-write 0");
    diagnose_with(w, "?replicas=1", HF_LEVEL_WARNING,
                  "1 of 1 replicas confirm");
    diagnose_with(w, "?replicas=2", HF_LEVEL_ERROR,
                  "replicas=2, and 1 are connected");
    of_replica = world_open(w, replica.url, NULL);
    diagnosis_says(of_replica, HF_LEVEL_ERROR, "replication",
                   text_of("%d", w->redis->port));
    diagnosis_says(of_replica, HF_LEVEL_ERROR, "locking", "replica");
    redis_server_end(&replica);
}

static void set_user(struct world *w, const char *more)
{
    redis_server_do(w->redis,
                    "ACL SETUSER worker reset on >secret ~* &* +@all -info "
                    "-config %s",
                    more);
}

/* A setting that the user may not read is a finding, and so is a lock that the
 * user may not acquire. */
CASE(test_diagnose_rights)
{
    hf_client *c;

    redis_do(w, "CONFIG SET appendonly yes");
    redis_do(w, "CONFIG SET appendfsync everysec");
    set_user(w, "+ping");
    c = world_open(
        w, text_of("redis://worker:secret@127.0.0.1:%d", w->redis->port), NULL);
    diagnosis_says(c, HF_LEVEL_WARNING, "settings", "+info");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    redis_do(w, "ACL SETUSER worker +info");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "+config|get");
    redis_do(w, "ACL SETUSER worker +config|get");
    diagnosis_says(c, HF_LEVEL_WARNING, "persistence", "everysec");
    diagnosis_says(c, HF_LEVEL_OK, "rights", "worker has every right");
    redis_do(w, "ACL SETUSER worker -hset -zadd");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "cannot be acquired");
    diagnosis_says(c, HF_LEVEL_ERROR, "rights",
                   "ACL SETUSER worker +hset +zadd");
    redis_do(w, "ACL SETUSER worker +hset +zadd -pubsub -scan");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights", " +pubsub|numsub");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights", " +scan");
    redis_do(w, "ACL SETUSER worker +pubsub +scan resetkeys "
                "~holdfast-*");
    diagnosis_says(c, HF_LEVEL_ERROR, "rights", "ACL SETUSER worker ~*");
    redis_do(w, "ACL SETUSER worker ~* resetchannels");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights", "waiters poll");
    diagnosis_says(c, HF_LEVEL_WARNING, "rights",
                   "ACL SETUSER worker &redisson_lock__channel:* ");
    redis_do(w, "ACL SETUSER worker &*");
    diagnosis_says(c, HF_LEVEL_OK, "rights", "worker has every right");
    redis_do(w, "ACL SETUSER worker -eval");
    diagnosis_says(c, HF_LEVEL_ERROR, "rights", "'eval'");
}

CASE(test_diagnose_clock)
{
    hf_client *c = client_of(w);

    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
    clock_is_wrong_by(100);
    diagnosis_says(c, HF_LEVEL_WARNING, "clock", "run NTP");
    clock_is_wrong_by(-100);
    diagnosis_says(c, HF_LEVEL_WARNING, "clock", "run NTP");
    clock_is_wrong_by(0);
    diagnosis_says(c, HF_LEVEL_OK, "clock", "apart");
}

/* The server refuses every command for a while: the diagnosis shows the
 * server's error and does not mistake it for a missing right. */
CASE(test_diagnose_busy)
{
    hf_client *c = client_of(w);
    redisContext *other = redisConnectUnix(w->redis->socket);
    int done = 0;

    assert_non_null(other);
    redis_do(w, "CONFIG SET lua-time-limit 1");
    assert_int_equal(redisAppendCommand(other, "EVAL %s 0", "while 1 do end"),
                     REDIS_OK);
    while (!done)
        assert_int_equal(redisBufferWrite(other, &done), REDIS_OK);
    COMES(redis_do(w, "PING") == -1);
    diagnosis_says(c, HF_LEVEL_WARNING, "settings", "BUSY");
    diagnosis_says(c, HF_LEVEL_ERROR, "locking", "BUSY");
    assert_int_equal(redis_do(w, "SCRIPT KILL"), 0);
    redisFree(other);
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
}

CASE(test_diagnose_latency)
{
    hf_client *c;

    proxy_set(w->proxy, PROXY_DELAY, 1000);
    c = world_open(w, w->far_url,
                   CLIENT(.ttl_ms = 6000, .op_timeout_ms = 10000));
    diagnosis_says(c, HF_LEVEL_ERROR, "latency", "longer ttl");
    world_ends(w, c);
    proxy_set(w->proxy, PROXY_PASS, 0);
    c = world_open(w, w->far_url,
                   CLIENT(.ttl_ms = 3600000, .op_timeout_ms = 10000));
    diagnosis_says(c, HF_LEVEL_OK, "latency", "3600000");
}
