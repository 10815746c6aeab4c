/* Passwords and users, including a user that has only the rights that the
 * manual lists. */
#include "redis_faults.h"

/* This header defines the rules of the manual as ACL_KEYS, ACL_CHANNELS and
 * ACL_COMMANDS. */
#include "acl_rules.h"

GROUP("auth", .server = &redis_with_password);

#define PASSWORD "secret-of-default"

static void expect_open(struct world *w, const char *userinfo,
                        const char *password, int code)
{
    hf_client *c = NULL;
    int rc =
        hf_open(text_of("redis://%s127.0.0.1:%d", userinfo, w->redis->port),
                CLIENT(.password = password), &c, &w->err);

    if (rc != code)
        fail_msg("%s: %d, %s", userinfo, rc, w->err.text);
    assert_null(strstr(w->err.text, "secret"));
    hf_close(c);
}

CASE(test_password_right_and_wrong)
{
    expect_open(w, "", NULL, HF_EAUTH);
    expect_open(w, ":" PASSWORD "@", NULL, 0);
    expect_open(w, "default:" PASSWORD "@", NULL, 0);
    expect_open(w, "", PASSWORD, 0);
    expect_open(w, ":not-the-secret@", NULL, HF_EAUTH);
    expect_open(w, "stranger:" PASSWORD "@", NULL, HF_EAUTH);
    expect_open(w, "default:secret%20with%20spaces@", NULL, HF_EAUTH);
}

static void add_user_as(struct world *w, const char *name, const char *rules)
{
    redisReply *reply;
    char command[2048], *rest = command;
    const char *argv[100] = {"ACL", "SETUSER", name, "on", ">secret-of-worker"};
    int argc = 5;

    snprintf(command, sizeof(command), "%s", rules);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            argv[argc++] = word;
    redis_do(w, "ACL DELUSER %s", name);
    reply = redisCommandArgv(w->redis->admin, argc, argv, NULL);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    freeReplyObject(reply);
}

static void add_user(struct world *w, const char *rules)
{
    add_user_as(w, "worker", rules);
}

static hf_lock *user_of_name(struct world *w, const char *user,
                             const char *prefix, const char *name,
                             const hf_lock_options *lopt)
{
    size_t i = w->len;

    OK(hf_open(text_of("redis://%s@127.0.0.1:%d?prefix=%s", user,
                       w->redis->port, prefix),
               CLIENT(.password = "secret-of-worker", .ttl_ms = 4500),
               &w->clients[i], &w->err));
    OK(hf_lock_new(w->clients[i], name, HF_CSTRING, lopt, &w->locks[i], NULL));
    w->len++;
    return w->locks[i];
}

static hf_lock *user_of(struct world *w, const char *user, const char *prefix,
                        const hf_lock_options *lopt)
{
    return user_of_name(w, user, prefix, "n", lopt);
}

static hf_lock *worker_of(struct world *w, const hf_lock_options *lopt)
{
    return user_of(w, "worker", "lk:", lopt);
}

static hf_lock *worker(struct world *w, enum hf_fairness fairness)
{
    return worker_of(w, KIND(HF_MUTEX, .fairness = fairness));
}

/* Asserts that waiting, renewing, inspecting, listing and breaking all work for
 * that user. */
static void held_and_waited_for(struct world *w, hf_lock *a, hf_lock *b,
                                const char *waiters)
{
    struct taker *t;
    hf_info *info;
    hf_names *names = NULL;

    OK(hf_lock_acquire(a, NULL, &w->err));
    t = taker_start(w, b, 10000);
    world_has_waiter(w, waiters);
    world_renews(a);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 1);
    OK(hf_list(w->clients[0], NULL, &names, &w->err));
    assert_int_equal(names->len, 1);
    hf_names_free(names);
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, 1400);
    OK(hf_break(w->clients[0], "n", 1, &w->err));
    taker_end(t);
    world_is_clean(w);
}

static void all_of_it(struct world *w, enum hf_fairness fairness)
{
    held_and_waited_for(w, worker(w, fairness), worker(w, fairness),
                        fairness == HF_FAIR ? "holdfast:seen:{lk:n}"
                                            : "holdfast:waiters:{lk:n}");
}

static void nothing_was_denied(struct world *w)
{
    redisReply *reply = redis_ask(w, "ACL LOG");
    size_t denied = reply->elements;

    freeReplyObject(reply);
    assert_int_equal(denied, 0);
}

CASE(test_limited_user_suffices)
{
    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    all_of_it(w, HF_UNFAIR);
    nothing_was_denied(w);
}

static void limited_user_of(struct world *w, enum hf_kind kind)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *a, *b;

    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    opt.kind = kind;
    opt.permits = kind == HF_SEMAPHORE ? 1 : 0;
    opt.fairness = HF_FAIR;
    a = worker_of(w, &opt);
    b = worker_of(w, &opt);
    held_and_waited_for(w, a, b, "holdfast:line:{lk:n}");
    if (kind == HF_RWLOCK) {
        OK(hf_lock_acquire(a, NULL, NULL));
        OK(hf_lock_downgrade(a, &w->err));
        OK(hf_lock_release(a, NULL));
    }
    nothing_was_denied(w);
}

CASE_IS(test_limited_user_suffices_for_rwlock, limited_user_of(w, HF_RWLOCK))
CASE_IS(test_limited_user_suffices_for_semaphore,
        limited_user_of(w, HF_SEMAPHORE))

CASE(test_limited_user_suffices_for_latch)
{
    hf_latch *latch;
    hf_names *names = NULL;
    uint64_t left = 9;

    w->may_leave = true; /* results of latch requests stay for a while */
    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    worker(w, HF_UNFAIR);
    latch = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(latch, 2, &w->err));
    EXPECT(HF_ETIMEDOUT, hf_latch_wait(latch, 50, NULL, &w->err));
    OK(hf_list(w->clients[0], NULL, &names, &w->err));
    assert_int_equal(names->len, 1);
    hf_names_free(names);
    OK(hf_latch_down(latch, &left, &w->err));
    assert_int_equal(left, 1);
    OK(hf_break(w->clients[0], "l", 1, &w->err));
    OK(hf_latch_wait(latch, 10000, NULL, &w->err));
    world_ends(w, latch);
    nothing_was_denied(w);
}

CASE(test_limited_user_suffices_for_fair)
{
    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    all_of_it(w, HF_FAIR);
}

/* Adds a user with the same rules for another tenant, whose names begin with
 * "ot:". */
static void add_tenant(struct world *w)
{
    char rules[] = ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS;

    for (char *at = rules; (at = strstr(at, "lk:"));)
        memcpy(at, "ot:", 3);
    add_user_as(w, "tenant", rules);
}

static bool is_denied(redisContext *c, const char *command)
{
    redisReply *reply = redisCommand(c, command);
    bool denied = reply && reply->type == REDIS_REPLY_ERROR &&
                  strncmp(reply->str, "NOPERM", 6) == 0;

    assert_non_null(reply);
    freeReplyObject(reply);
    return denied;
}

/* Two tenants of one server have a prefix each: the user of one can neither
 * wake the clients of the other nor receive their messages. */
CASE(test_tenants_are_kept_apart)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *a, *b;
    redisContext *c;
    struct taker *t;

    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    add_tenant(w);
    a = user_of(w, "tenant", "ot:", &opt);
    b = user_of(w, "tenant", "ot:", &opt);
    OK(hf_lock_acquire(a, NULL, &w->err));
    t = taker_start(w, b, 10000);
    world_has_waiter(w, "holdfast:waiters:{ot:n}");
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 1400);
    nothing_was_denied(w);
    c = redisConnectUnix(w->redis->socket);
    assert_non_null(c);
    freeReplyObject(redisCommand(c, "AUTH worker secret-of-worker"));
    assert_true(is_denied(c, "PUBLISH holdfast:wake:{ot:}:x 0"));
    assert_true(is_denied(c, "SUBSCRIBE holdfast:wake:{ot:}:x"));
    assert_true(is_denied(c, "PUBLISH holdfast:mark:{ot:n} 0"));
    assert_false(is_denied(c, "PUBLISH holdfast:wake:{lk:}:x 0"));
    redisFree(c);
}

/* The same key can be reached with several prefixes. A holder that releases
 * publishes on the waiter's channel, whose name contains the waiter's prefix.
 * If the holder's user may not publish there, the release still succeeds, and
 * the waiter finds the lock free when it polls. */
static void prefixes_meet(struct world *w, const char *user, const char *prefix)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *a, *b = NULL;
    hf_client *whole = NULL;
    struct taker *t;

    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    add_user_as(w, "free", "~* &* +@all");
    a = user_of(w, user, prefix, &opt);
    OK(hf_open(
        text_of("redis://free:secret-of-worker@127.0.0.1:%d", w->redis->port),
        NULL, &whole, &w->err));
    OK(hf_lock_new(whole, "lk:n", 4, &opt, &b, &w->err));
    for (int i = 0; i < 4; i++) {
        hf_lock *first = i % 2 ? a : b, *second = i % 2 ? b : a;

        OK(hf_lock_acquire(first, NULL, &w->err));
        t = taker_start(w, second, 10000);
        world_has_waiter(w, "holdfast:waiters:{lk:n}");
        OK(hf_lock_release(first, &w->err));
        taker_gets_it(t, 2000);
    }
    hf_lock_free(b);
    hf_close(whole);
    world_is_clean(w);
}

CASE(test_prefixes_of_one_name_meet)
{
    prefixes_meet(w, "free", "lk:");
    nothing_was_denied(w);
}

CASE_IS(test_prefix_that_is_not_allowed, prefixes_meet(w, "worker", "lk:"))

/* Returns whether the waiter has polled again since it subscribed. The third
 * field of its entry is then 1. */
static bool waiter_listens(struct world *w, const char *parties)
{
    return redis_do(w, "EVAL %s 1 %s",
                    "local s=redis.call('hvals',KEYS[1])[1] or ''\n"
                    "return string.match(s,'^%d+ %d+ 1') and 1 or 0",
                    parties) == 1;
}

/* A fair waiter keeps its place even if the holder may not publish on its
 * channel. The waiter is not notified of the release, but the holder cannot
 * take the lock again before the waiter has had its turn. If the machine
 * stalls, the waiter may poll too late and lose its place, so one successful
 * round of five is enough. */
static void fair_waiter_keeps_its_place(struct world *w, enum hf_kind kind,
                                        const char *waiters)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *a, *b;
    bool kept = false;

    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    add_user_as(w, "free", "~* &* +@all");
    opt.kind = kind;
    opt.permits = kind == HF_SEMAPHORE ? 1 : 0;
    opt.fairness = HF_FAIR;
    a = worker_of(w, &opt);
    b = user_of_name(w, "free", "", "lk:n", &opt);
    for (int i = 0; i < 5 && !kept; i++) {
        struct taker *t;
        int rc;

        OK(hf_lock_acquire(a, NULL, &w->err));
        t = taker_start(w, b, 20000);
        world_has_waiter(w, waiters);
        COMES(waiter_listens(w, waiters));
        OK(hf_lock_release(a, &w->err));
        rc = hf_lock_try(a, &w->err);
        assert_true(rc == 0 || rc == HF_EBUSY);
        kept = rc == HF_EBUSY;
        if (!kept)
            OK(hf_lock_release(a, &w->err));
        taker_gets_it(t, 4000);
    }
    assert_true(kept);
}

CASE_IS(test_fair_waiter_of_another_prefix,
        fair_waiter_keeps_its_place(w, HF_MUTEX, "holdfast:seen:{lk:n}"))
CASE_IS(test_fair_writer_of_another_prefix,
        fair_waiter_keeps_its_place(w, HF_RWLOCK, "holdfast:party:{lk:n}"))
CASE_IS(test_fair_permits_of_another_prefix,
        fair_waiter_keeps_its_place(w, HF_SEMAPHORE, "holdfast:party:{lk:n}"))

/* A client whose user may not count the listeners of a channel publishes
 * Redisson's message at every release. */
CASE(test_user_without_pubsub)
{
    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS " -pubsub");
    all_of_it(w, HF_UNFAIR);
}

/* A waiter that may not subscribe polls. */
CASE(test_user_without_channels)
{
    hf_lock *a, *b;
    struct taker *t;

    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS " -subscribe");
    a = worker(w, HF_UNFAIR);
    b = worker(w, HF_UNFAIR);
    OK(hf_lock_acquire(a, NULL, NULL));
    t = taker_start(w, b, 10000);
    world_has_waiter(w, "holdfast:waiters:{lk:n}");
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, 2000);
    taker_end(t);
}

static void hear(void *arg, const hf_event *e)
{
    if (e->type == HF_EVENT_WANTED)
        ++*(unsigned *)arg;
}

static bool has_heard(hf_client *c, const unsigned *wanted)
{
    hf_client_dispatch(c);
    return *wanted;
}

/* A client holds the lock, and another client of the same user calls hf_ask().
 * `may` says whether the rules allow a client's own channel. If they do not,
 * the holder cannot subscribe to its channel but keeps the lock, and hf_ask()
 * fails with HF_EAUTH, because its client may not publish on that channel. */
static void asks_a_listener(struct world *w, const char *rules, bool may)
{
    unsigned wanted = 0;
    hf_client *c;
    hf_lock *a;

    add_user(w, rules);
    worker(w, HF_UNFAIR);
    c = world_open(
        w, text_of("redis://worker@127.0.0.1:%d?prefix=lk:", w->redis->port),
        CLIENT(.password = "secret-of-worker", .on_event = hear,
               .event_arg = &wanted));
    a = world_handle(w, c, "n", NULL);
    OK(hf_lock_acquire(a, NULL, &w->err));
    assert_int_equal(hf_ask(w->clients[0], "n", 1, &w->err),
                     may ? 0 : HF_EAUTH);
    if (may)
        COMES(has_heard(c, &wanted));
    OK(hf_lock_renew(a, 0, &w->err));
    OK(hf_lock_release(a, &w->err));
    world_is_clean(w);
}

CASE(test_limited_user_asks)
{
    asks_a_listener(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS, true);
    nothing_was_denied(w);
}

CASE_IS(test_user_without_its_channel_asks,
        asks_a_listener(w,
                        ACL_KEYS " resetchannels &redisson_lock__channel:{lk:* "
                                 "&holdfast:*mark:{lk:* " ACL_COMMANDS,
                        false))

CASE(test_forbidden_keys_are_eauth)
{
    hf_lock *a;

    add_user(w, "~other:* " ACL_CHANNELS " " ACL_COMMANDS);
    a = worker(w, HF_UNFAIR);
    EXPECT(HF_EAUTH, hf_lock_try(a, &w->err));
    expect_words(w->err.text, "NOPERM");
    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS " -eval");
    expect_open(w, "worker:secret-of-worker@", NULL, HF_EAUTH);
}

/* Every call on a latch fails with HF_EAUTH, every time. */
CASE(test_forbidden_latch_is_eauth)
{
    hf_latch *latch;
    uint64_t left;

    w->may_leave = true; /* results of latch requests stay for a while */
    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    worker(w, HF_UNFAIR);
    latch = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(latch, 1, &w->err));
    redis_do(w, "ACL SETUSER worker resetkeys ~other:*");
    for (int i = 0; i < 3; i++) {
        int64_t began = wait_fair();

        EXPECT(HF_EAUTH, hf_latch_wait(latch, 0, NULL, &w->err));
        expect_words(w->err.text, "NOPERM");
        EXPECT(HF_EAUTH, hf_latch_wait(latch, HF_FOREVER, NULL, &w->err));
        EXPECT(HF_EAUTH, hf_latch_get(latch, &left, &w->err));
        EXPECT(HF_EAUTH, hf_latch_down(latch, NULL, &w->err));
        expect_words(w->err.text, "NOPERM");
        assert_true(wait_within(began, 700));
    }
    redis_do(w, "ACL SETUSER worker ~*");
    OK(hf_latch_down(latch, &left, &w->err));
    assert_int_equal(left, 0);
    OK(hf_latch_wait(latch, 0, NULL, &w->err));
}

/* The password changes while the client is connected. Then the client's
 * connections are killed. */
CASE(test_password_changed_meanwhile)
{
    hf_lock *a;

    add_user(w, ACL_KEYS " " ACL_CHANNELS " " ACL_COMMANDS);
    a = worker(w, HF_UNFAIR);
    world_free_for_all(w, a);
    redis_do(w, "ACL SETUSER worker resetpass >other");
    redis_do(w, "CLIENT KILL USER worker");
    for (int i = 0; i < 5; i++) {
        int rc = hf_lock_timed(a, i % 2 ? 3000 : 0, &w->err);

        if (rc != HF_EAUTH || !strstr(w->err.text, "refused the user"))
            fail_msg("%d: %d, %s", i, rc, w->err.text);
    }
    redis_do(w, "ACL SETUSER worker >secret-of-worker");
    COMES_MS(hf_lock_try(a, &w->err) == 0, 8000);
    OK(hf_lock_release(a, &w->err));
}
