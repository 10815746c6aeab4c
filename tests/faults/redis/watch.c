/* hf_watch_new() on Redis: the settings and rights that it needs, and which
 * changes it reports. */
#include "redis_faults.h"

#include "../any/watch.h"

#define SETTING "notify-keyspace-events"

#include <stdio.h>
#include <string.h>

static int tell_all(struct world *w)
{
    redis_do(w, "CONFIG SET " SETTING " KA");
    return 0;
}

GROUP("watch", .begin = tell_all);

CASE(test_watch_needs_a_setting)
{
    static const char *const wrong[] = {"", "EA", "K", "Kg$lhx", "K$x"};
    struct seen s;
    hf_lock *a = world_near(w);
    redisReply *reply;

    world_near(w);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        redis_do(w, "CONFIG SET " SETTING " %s", wrong[i]);
        watch_is_refused(w, w->clients[1], "n", 0, HF_ENOTSUP,
                         "CONFIG SET notify-keyspace-events KA");
        watch_is_refused(w, w->clients[1], "n", HF_WATCH_PREFIX, HF_ENOTSUP,
                         SETTING);
    }
    reply = redis_ask(w, "CONFIG GET " SETTING);
    /* The client must not have added a flag to the setting, such as 'h'. */
    assert_null(strchr(reply->element[1]->str, 'h'));
    freeReplyObject(reply);
    redis_do(w, "CONFIG SET " SETTING " Kg$lhxe");
    watch(w, 1, "n", 0, &s);
    hears(w, &s, a);
}

CASE(test_watch_needs_rights)
{
    struct seen s;
    hf_lock *a = world_near(w);

    redis_server_do(w->redis,
                    "ACL SETUSER worker reset on >secret ~* &* +@all -config");
    world_lock(w, text_of("redis://worker:secret@127.0.0.1:%d", w->redis->port),
               30000, 5000, HF_FAIR_DEFAULT);
    watch_is_refused(w, w->clients[1], "n", 0, HF_EAUTH, "+config|get");
    redis_do(w, "ACL SETUSER worker resetchannels +config|get "
                "&__keyspace@0__:n &__keyspace@0__:*{n}");
    watch(w, 1, "n", 0, &s);
    hears(w, &s, a);
    watch_is_refused(w, w->clients[1], "m", 0, HF_EAUTH, "channel");
    watch_is_refused(w, w->clients[1], "n", HF_WATCH_PREFIX, HF_EAUTH,
                     "channel");
    hears(w, &s, a); /* the refused watches changed nothing */
}

/* Any change of the lock's keys is reported, whether by Redisson, redis-py or
 * another program. */
CASE(test_watch_hears_others)
{
    struct seen s;

    world_near(w);
    watch(w, 0, "n", 0, &s);
    redis_server_do(w->redis,
                    "HSET n 8743c9c0-0795-4907-87fd-6c719a6b4586:1 1");
    COMES(is_seen(&s, 0));
    redis_do(w, "DEL n");
    COMES(is_seen(&s, 1));
    redis_do(w, "SET n x PX 100");
    COMES(is_seen(&s, 2));
    COMES(redis_do(w, "EXISTS n") == 0 && is_seen(&s, 3));
    redis_do(w, "RPUSH redisson_lock_queue:{n} x");
    COMES(is_seen(&s, 4));
    redis_do(w, "DEL redisson_lock_queue:{n}");
    COMES(is_seen(&s, 5));
}

/* A prefix is not a pattern, and our auxiliary keys are not reported as
 * names. */
CASE(test_watch_prefix_means_itself)
{
    struct seen glob, all;

    world_near(w);
    watch(w, 0, "a*[b]?\\", HF_WATCH_PREFIX, &glob);
    watch(w, 0, "", HF_WATCH_PREFIX, &all);
    redis_do(w, "SET holdfast:info:{n} 1");
    redis_do(w, "SET %s 1", "axb?\\1");
    redis_do(w, "SET %s 1", "a*b?\\1");
    redis_do(w, "SET %s 1", "a*[b]x\\1");
    redis_do(w, "SET %s 1", "a*[b]?x");
    redis_do(w, "SET %s 1", "a*[b]?\\2");
    COMES(is_seen(&glob, 0));
    assert_int_equal(glob.calls, 1);
    assert_string_equal(glob.name, "a*[b]?\\2");
    redis_do(w, "SET last 1");
    COMES(is_seen(&all, 0) &&
          (strcmp(all.name, "last") == 0 || all.name[0] == '\0'));
    world_ends(w, glob.watch);
    world_ends(w, all.watch);
    redis_do(w, "FLUSHALL");
}

/* Both watches share one connection, so their events arrive in order: after an
 * event of "m", no earlier event of "n" is still on its way. */
CASE(test_watch_renewals_are_no_change)
{
    hf_lock *a = world_lock(w, w->near_url, 600, 5000, HF_FAIR_DEFAULT);
    struct seen n, m;
    unsigned calls;

    world_near(w);
    watch(w, 1, "n", 0, &n);
    watch(w, 1, "m", 0, &m);
    OK(hf_lock_timed(a, 5000, &w->err));
    redis_do(w, "SET m 1");
    COMES(is_seen(&m, 0) && is_seen(&n, 0));
    calls = n.calls;
    world_renews(a);
    world_renews(a);
    redis_do(w, "DEL m");
    COMES(is_seen(&m, 1));
    assert_int_equal(n.calls, calls);
    OK(hf_lock_release(a, &w->err));
    COMES(is_seen(&n, calls));
}

CASE(test_watch_is_of_one_database)
{
    struct seen s;
    const char *url = text_of("%s/3", w->redis->url);
    hf_lock *other = world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);

    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    watch(w, 1, "n", 0, &s);
    redis_do(w, "SET n 1");
    redis_do(w, "DEL n");
    assert_int_equal(s.calls, 0);
    hears(w, &s, other);
}

CASE(test_watch_has_one_connection)
{
    long long before;
    struct seen n, m;

    world_near(w);
    before = redis_connections(w);
    watch(w, 0, "n", 0, &n);
    watch(w, 0, "m", 0, &m);
    COMES(redis_connections(w) == before + 1);
    world_ends(w, n.watch);
    COMES(is_seen(&m, 0));
    world_ends(w, m.watch);
    COMES(redis_connections(w) == before);
}

CASE(test_watch_over_a_restart)
{
    struct seen s;
    hf_lock *a = world_near(w);

    world_near(w);
    watch(w, 1, "n", 0, &s);
    redis_server_kill(w->redis);
    OK(redis_server_again(w->redis));
    COMES(hf_client_dispatch(w->clients[1]) >= 0 && world_lines(w, 1) >= 2);
    watch_is_refused(w, w->clients[1], "m", 0, HF_ENOTSUP, SETTING);
    world_ends(w, s.watch);
    redis_do(w, "CONFIG SET " SETTING " KA");
    watch(w, 1, "n", 0, &s);
    hears(w, &s, a);
}
