/* Servers lose their data; tokens rise nevertheless. */
#include "redlock_faults.h"

GROUP("memory");

/* A TTL that is long enough for a machine that stalls. */
#define TTL_MS 5000
#define OUT "max_lease=5s&" PATIENT

static void is_held(struct world *w, hf_lock *lock, struct taker *t)
{
    if (taker_back(t))
        fail_msg("%d: %s", t->rc, t->err.text);
    OK(hf_lock_explain(lock, &w->err));
}

/* A majority is restarted, one server after the other. A restarted server does
 * not vote until all leases from before its restart have ended. The other
 * servers still know that the lock is held, and say so to old clients and to a
 * new one. */
CASE(test_restarted_one_after_the_other)
{
    hf_lock *c;
    struct taker *t;
    uint64_t token;
    hf_lock *a = far(w, TTL_MS, 15000, OUT), *b = far(w, TTL_MS, 15000, OUT);

    /* Takes long if the servers have just started: they do not vote yet. */
    world_takes(w, a, WAIT_LONG_MS);
    token = token_of(a);
    COMES(keys() == SERVERS);
    t = taker_start(w, b, 120000);
    for (int i = 0; i < 3; i++) {
        int64_t began = wait_now();

        restart(i);
        assert_true(NEVER_MS(has(i), TTL_MS - 100));
        COMES(has(i));
        assert_true(wait_ms_since(began) >= TTL_MS - 100);
        is_held(w, a, t);
    }
    restart(3); /* when c opens, this server must not vote yet */
    c = far(w, TTL_MS, 15000, OUT);
    is_busy(w, c);
    assert_false(has(3));
    is_held(w, a, t);
    assert_true(token_of(a) == token);
    gives(w, a);
    taker_has_it(t, 3000);
    assert_true(t->token > token);
    taker_end(t);
}

/* A majority is restarted at once: no client is granted anything until the
 * leases from before have ended. */
CASE(test_majority_restarted_at_once)
{
    hf_lock *a = far(w, TTL_MS, 15000, OUT);
    hf_lock *b = far(w, TTL_MS, 15000, OUT);
    uint64_t token;

    world_takes(w, a, WAIT_LONG_MS);
    token = token_of(a);
    for (int i = 0; i < 3; i++)
        restart(i);
    FAILS(hf_lock_timed(b, 500, &w->err));
    says(w->err.text, "started recently");
    world_takes(w, b, WAIT_LONG_MS);
    EXPECT(HF_ELOST, hf_lock_check(a));
    assert_true(token_of(b) > token);
    gives(w, b);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
}

/* Without max_lease, restarting a majority lets two clients claim the lock. The
 * protected resource tells them apart by their tokens. */
CASE(test_without_max_lease_the_token_protects)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT),
            *b = far(w, 30000, 5000, PATIENT);
    uint64_t highest = 0;

    takes(w, a);
    for (int i = 0; i < 3; i++)
        restart(i);
    world_takes(w, b, 3000);
    OK(hf_lock_check(a));
    OK(hf_lock_check(b));
    highest = token_of(b);
    /* The resource refuses the writes of `a`, whose token is lower. */
    assert_true(token_of(a) < highest);
    COMES(hf_lock_renew(a, 0, NULL) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    renews(w, b);
    gives(w, b);
}

/* A master fails, and a replica that lacks the key takes over its address. Then
 * two clients hold a plain lock at once, but not a redlock. */
CASE(test_failover_that_loses_the_key)
{
    struct redis_server replica = {0};
    const char *plain;
    hf_lock *a, *b, *c, *d;

    OK(redis_server_start(&replica));
    plain = text_of("redis://127.0.0.1:%d?dialect=string", proxy_port(way[0]));
    a = world_lock(w, plain, 30000, 5000, HF_FAIR_DEFAULT);
    b = world_lock(w, plain, 30000, 5000, HF_FAIR_DEFAULT);
    world_takes(w, a, 2000);
    proxy_lead_to(way[0], replica.port);
    proxy_cut(way[0]);
    world_takes(w, b, 3000);
    OK(hf_lock_check(a)); /* a and b both believe that they hold it */
    OK(hf_lock_check(b));
    gives(w, b);
    hf_lock_release(a, NULL);
    redis_server_do(&replica, "FLUSHALL");
    delete_key(0);
    proxy_lead_to(way[0], SERVER(0)->port);
    proxy_cut(way[0]);

    c = far(w, 30000, 5000, PATIENT);
    d = far(w, 30000, 5000, PATIENT);
    takes(w, c);
    proxy_lead_to(way[0], replica.port);
    proxy_cut(way[0]);
    FAILS(hf_lock_timed(d, 500, &w->err));
    renews(w, c);
    COMES(hf_lock_renew(c, 0, &w->err) ||
          redis_server_do(&replica, "EXISTS n") == 1);
    OK(hf_lock_check(c));
    gives(w, c);
    world_takes(w, d, 2000);
    gives(w, d);
    delete_key(0);
    redis_server_end(&replica);
}

static void set_reserve(int i, long long us)
{
    do_at(i, "SET holdfast:reserve:{n} %lld", us);
}

static long long server_us(int i)
{
    redisReply *reply = redis_server_ask(SERVER(i), "TIME");
    long long us = strtoll(reply->element[0]->str, NULL, 10) * 1000000;

    freeReplyObject(reply);
    return us;
}

static uint64_t top_of(int i)
{
    redisReply *reply = redis_server_ask(SERVER(i), "GET holdfast:reserve:{n}");
    unsigned long long base = 0, ahead = 0;

    if (reply->str)
        assert_true(sscanf(reply->str, "%llu %llu", &base, &ahead) >= 1);
    freeReplyObject(reply);
    return base + ahead;
}

static uint64_t take_and_die(void)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = 30000};
    struct proc_reply reply;
    struct proc p = {0};

    OK(proc_start(&p));
    snprintf(cmd.text, sizeof(cmd.text), "%s", far_url(PATIENT));
    OK(proc_do(&p, &cmd, &reply));
    assert_int_equal(reply.rc, 0);
    cmd = (struct proc_cmd){.op = PROC_NEW, .name = "n", .name_len = 1};
    OK(proc_do(&p, &cmd, &reply));
    cmd = (struct proc_cmd){.op = PROC_TAKE, .wait_ms = WAIT_LONG_MS};
    OK(proc_do(&p, &cmd, &reply));
    if (reply.rc)
        fail_msg("%s", reply.err.text);
    proc_kill(&p);
    return reply.token;
}

/* The token numbers of two servers are one and two hours ahead. Holders die
 * without releasing, and each holder has a different majority. Tokens must rise
 * nevertheless. */
CASE(test_tokens_rise_over_numbers_far_apart)
{
    const long long hour = 3600 * 1000000LL;
    uint64_t last = 0, token;

    for (int round = 0; round < 2; round++)
        for (int i = 0; i < SERVERS; i++)
            for (int j = 0; j < i; j++) {
                /* Set the numbers before the first grant only; later grants
                 * change them. */
                for (int k = 0; !last && k < 2; k++)
                    set_reserve(k, server_us(k) + (k + 1) * hour);
                cut(i);
                cut(j);
                token = take_and_die();
                if (token <= last)
                    fail_msg("%llu after %llu", (unsigned long long)token,
                             (unsigned long long)last);
                last = token;
                for (int k = 0; k < SERVERS; k++)
                    delete_key(k);
                heal(i);
                heal(j);
            }
}

/* A client must not use its token before each server of its majority has a
 * token number that is at least as high. So it first sends the token to the
 * servers whose number is lower. */
CASE(test_second_round_tells_a_majority)
{
    const long long hour = 3600 * 1000000LL;
    hf_lock *a, *b;
    uint64_t token;
    int told = 0;

    w->may_leave = true; /* not all servers run */
    a = far(w, 30000, 5000, PATIENT);
    b = near(w);
    cut(4);
    for (int i = 0; i < 2; i++)
        set_reserve(i, server_us(i) + hour);
    world_takes(w, a, 2000);
    assert_true(token_of(a) > (uint64_t)(server_us(0) + hour / 2));
    token = token_of(a);
    for (int i = 0; i < SERVERS; i++)
        told += top_of(i) >= token;
    assert_true(told >= 3);
    /* The token of `a` came from the numbers of these two servers. */
    redis_server_kill(SERVER(0));
    redis_server_kill(SERVER(1));
    delete_key(2);
    delete_key(3);
    world_takes(w, b, 3000); /* granted by 2, 3 and 4 */
    assert_true(token_of(b) > token);
    gives(w, b);
    heal_all();
}
