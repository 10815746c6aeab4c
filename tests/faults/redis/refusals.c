/* The ways in which a Redis server refuses requests, for any/refusals.c. */
#include "../any/any_faults.h"
#include "redis_faults.h"

#include <sys/stat.h>
#include <unistd.h>

const int64_t any_refused_ttl_ms = 5000;

/* Defines a function that runs the command. */
#define DOES(name, command)                                                    \
    static void name(struct world *w)                                          \
    {                                                                          \
        redis_do(w, command);                                                  \
    }

/* The administrator uses the same user as the clients, so its commands on keys
 * are refused too. But while these rights are missing, the administrator sends
 * only commands that need no keys. */
DOES(forbid_keys, "ACL SETUSER default resetkeys ~other:*")
DOES(allow_keys, "ACL SETUSER default ~*")
/* The server executes the scripts, but each of them fails at one of these
 * commands. */
DOES(forbid_commands, "ACL SETUSER default -hset -hdel -zadd -zrem -pexpire")
DOES(allow_commands, "ACL SETUSER default +@all")
DOES(forbid_eval, "ACL SETUSER default -eval -evalsha")
DOES(exhaust, "CONFIG SET maxmemory 1")
DOES(relieve, "CONFIG SET maxmemory 0")
DOES(want_replicas, "CONFIG SET min-replicas-to-write 1")
DOES(want_none, "CONFIG SET min-replicas-to-write 0")
DOES(make_replica, "REPLICAOF 127.0.0.1 1")
DOES(make_master, "REPLICAOF NO ONE")

static bool saved(struct world *w, const char *how)
{
    redisReply *reply = redis_ask(w, "INFO persistence");
    bool over = strstr(reply->str, "rdb_bgsave_in_progress:0") &&
                strstr(reply->str, how);

    freeReplyObject(reply);
    return over;
}

/* Saves a snapshot and waits until the server reports `how`. Waits first for a
 * snapshot that is in progress. */
static void save(struct world *w, const char *how)
{
    COMES(saved(w, ""));
    assert_int_equal(redis_do(w, "BGSAVE"), 0);
    COMES(saved(w, how));
}

/* Makes the server refuse writes: it cannot save, because a directory has the
 * name of the snapshot's file. */
static void fail_saving(struct world *w)
{
    const char *path = text_of("%s/dump.rdb", w->redis->dir);

    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    redis_do(w, "CONFIG SET save %s", "3600 1000000");
    save(w, "rdb_last_bgsave_status:err");
}

static void save_again(struct world *w)
{
    assert_int_equal(rmdir(text_of("%s/dump.rdb", w->redis->dir)), 0);
    save(w, "rdb_last_bgsave_status:ok");
}

static const char fill[] = "for i = 1, 20000 do redis.call('set', "
                           "'fill:' .. i, string.rep('x', 90)) end";

void loading_prepare(struct world *w)
{
    static const char *const args[] = {
        "--enable-debug-command", "yes",
        "--loading-process-events-interval-bytes", "1024"};

    redis_server_kill(w->redis);
    memcpy(w->redis->args, args, sizeof(args));
    OK(redis_server_again(w->redis));
    redis_do(w, "EVAL %s 0", fill);
}

void loading_slow(struct world *w)
{
    redis_do(w, "CONFIG SET key-load-delay 2000");
}

static bool is_loading(struct world *w)
{
    redisReply *reply = redis_ask(w, "PING");
    bool is = strncmp(reply->str, "LOADING", 7) == 0;

    freeReplyObject(reply);
    return is;
}

void loading_end(struct world *w)
{
    assert_true(is_loading(w));
    redis_do(w, "CONFIG SET key-load-delay 0");
    COMES(!is_loading(w));
}

void loading_tidy(struct world *w)
{
    redis_do(w, "EVAL %s 0",
             "for i = 1, 20000 do redis.call('del', 'fill:' .. i) end");
}

static redisContext *reloader;

/* Makes the server save and reload all data, and returns while it is loading.
 * Connections survive this. */
static void reload(struct world *w)
{
    int done = 0;

    loading_slow(w);
    reloader = redisConnectUnix(w->redis->socket);
    assert_int_equal(redisAppendCommand(reloader, "DEBUG RELOAD"), REDIS_OK);
    while (!done)
        assert_int_equal(redisBufferWrite(reloader, &done), REDIS_OK);
    COMES(is_loading(w));
}

static void reload_end(struct world *w)
{
    redisReply *reply = NULL;

    loading_end(w);
    assert_int_equal(redisGetReply(reloader, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(reloader);
}

#define EVERYTHING .acquires = true, .releases = true, .renewals = true

const struct any_refusal any_refusals[] = {
    {"no right to the keys", HF_EAUTH, "NOPERM", forbid_keys, allow_keys,
     EVERYTHING},
    {"no right to run scripts", HF_EAUTH, "NOPERM", forbid_eval, allow_commands,
     EVERYTHING, .few = true},
    {"no right in the script", HF_EAUTH, "user executing the script",
     forbid_commands, allow_commands, EVERYTHING, .leaves_some = true},
    {"no memory", HF_EBACKEND, "OOM", exhaust, relieve, .acquires = true,
     .few = true},
    {"too few replicas", HF_EBACKEND, "NOREPLICAS", want_replicas, want_none,
     EVERYTHING, .few = true},
    {"a replica", HF_EBACKEND, "READONLY", make_replica, make_master,
     EVERYTHING, .few = true},
    {"disk error", HF_EBACKEND, "MISCONF", fail_saving, save_again, EVERYTHING,
     .few = true},
    {"loading its data", HF_EBACKEND, "LOADING", reload, reload_end, EVERYTHING,
     .few = true, .prepare = loading_prepare, .tidy = loading_tidy},
    {NULL},
};
