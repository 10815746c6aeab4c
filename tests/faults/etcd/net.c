/* Network faults: replies that are cut, late or lost; compaction; a server that
 * is stopped for a moment or killed. */
#include "etcd_faults.h"

#include <stdio.h>
#include <string.h>

GROUP("net");

enum { WAIT_MS = 30000 };

CASE(test_connection_reset_while_waiting)
{
    hf_lock *a = world_near(w);

    any_cut_waiter(w, a, world_far(w, 30000, 5000));
}

/* Creates a few revisions and compacts all of them. */
static void compact(void)
{
    char out[300], *at;

    for (int i = 0; i < 3; i++)
        ctl("put elsewhere %d", i);
    ctl("del elsewhere");
    OK(etcd_server_ctl(&etcd_one, "get x -w json", out, sizeof(out)));
    at = strstr(out, "\"revision\":");
    assert_non_null(at);
    ctl("compact --physical %ld", strtol(at + 11, NULL, 10));
}

CASE(test_compaction_while_waiting)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    for (int i = 0; i < 3; i++) {
        OK(hf_lock_timed(a, 5000, &w->err));
        t = taker_start(w, b, WAIT_MS);
        has_entries(2);
        compact();
        assert_false(taker_back(t));
        OK(hf_lock_check(a));
        OK(hf_lock_release(a, &w->err));
        taker_gets_it(t, 1000);
    }
}

/* The waiter has no connection while the holder releases. After the waiter has
 * reconnected, it gets the lock, whether it can still read the event of that
 * release or the server has compacted the event. */
static void released_unheard(struct world *w, bool compacts)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);

    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    OK(hf_lock_release(a, &w->err));
    if (compacts)
        compact();
    assert_false(taker_back(t));
    world_heal(w);
    taker_gets_it(t, 3000);
}

CASE_IS(test_release_while_the_waiter_is_away, released_unheard(w, false))
CASE_IS(test_compaction_while_the_waiter_is_away, released_unheard(w, true))

/* The holder has no connection when another client asks for the lock. If the
 * server has not compacted the event, the holder is notified after it
 * reconnects. In any case the holder is notified of later requests. */
static void asked_unheard(struct world *w, bool compacts)
{
    hf_lock *a = world_far(w, 30000, 5000);

    world_near(w);
    world_takes(w, a, WAIT_MS);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    OK(hf_ask(w->clients[1], "n", 1, &w->err));
    if (compacts)
        compact();
    world_heal(w);
    if (!compacts)
        COMES(world_heard_wish(w, 0));
    __atomic_store_n(&w->ears[0].wanted, 0, __ATOMIC_RELAXED);
    COMES(hf_ask(w->clients[1], "n", 1, &w->err) == 0 &&
          world_heard_wish(w, 0));
    OK(hf_lock_check(a));
    OK(hf_lock_release(a, &w->err));
}

CASE_IS(test_ask_while_the_holder_is_away, asked_unheard(w, false))
CASE_IS(test_compaction_while_the_holder_is_away, asked_unheard(w, true))

/* The deadline counts from the time when the renewal was sent, not from its
 * delayed reply. */
CASE(test_deadline_counts_from_sending)
{
    enum { TTL_MS = 8000, DELAY_MS = 800 };
    hf_lock *a = world_far(w, TTL_MS, 5000);
    int64_t last = 0, next, until;

    proxy_set(w->proxy, PROXY_DELAY, DELAY_MS);
    OK(hf_lock_timed(a, WAIT_MS, &w->err));
    until = wait_now() + 10LL * TTL_MS * 1000000;
    for (int changes = 0; changes < 4;) {
        assert_true(wait_now() < until);
        next = deadline_of(a);
        /* The first deadline comes from the reply that granted the lease. The
         * proxy did not delay that reply, so this deadline does not count. */
        if (last && next != last) {
            assert_true((next - wait_now()) / 1000000 <= TTL_MS - DELAY_MS);
            changes++;
        }
        last = next;
        wait_tick();
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    OK(hf_lock_release(a, &w->err));
}

/* Each reply arrives after the client gave up on its request: the retries
 * create nothing twice. */
CASE(test_answers_later_than_the_limit)
{
    hf_lock *a = world_far(w, 30000, 5000), *b = world_near(w);
    struct taker *t;

    world_free_for_all(w, a);
    proxy_set(w->proxy, PROXY_DELAY, 1800);
    t = taker_start(w, a, 20000);
    COMES(w->server->left(w) == 1);
    assert_true(NEVER_MS(w->server->left(w) != 1, 4000));
    EXPECT(HF_EBUSY, hf_lock_try(b, NULL));
    proxy_set(w->proxy, PROXY_PASS, 0);
    taker_has_it(t, WAIT_LONG_MS);
    assert_int_equal(w->server->left(w), 1);
    taker_gives(t);
}

/* While clients acquire, hold and release the lock, the server is stopped for
 * longer than the client waits for the reply to a single request. */
CASE(test_server_stands_for_two_seconds)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    int64_t began;
    struct taker *t;

    for (int i = 0; i < 3; i++) {
        if (i == 1)
            OK(hf_lock_timed(a, 5000, &w->err));
        OK(server_stop(w->process));
        began = wait_now();
        t = taker_start(w, b, WAIT_MS);
        if (i == 1)
            OK(hf_lock_release_nowait(a, &w->err));
        COMES(wait_ms_since(began) > 2000);
        assert_false(taker_back(t));
        OK(server_continue(w->process));
        taker_has_it(t, 3000);
        EXPECT(HF_EBUSY, hf_lock_try(a, NULL));
        assert_int_equal(w->server->left(w), 1);
        taker_gives(t);
        world_is_clean(w);
    }
}

/* A server with two addresses is stopped: the client must not look for another
 * server. */
CASE(test_server_of_two_addresses_stands)
{
    enum { OP_MS = 15000, STANDS_MS = 5000 }; /* a PING is sent every 2 s */
    hf_lock *a = world_near(w), *b;
    uint64_t before;
    struct taker *t;
    char url[128];

    resolver_leads_to(1, w->proxy);
    resolver_finds(1, 0, proxy_port(w->proxy));
    world_url(w, ANY_NAME, url, sizeof(url));
    b = world_lock(w, url, 4 * OP_MS, OP_MS, HF_FAIR);
    world_takes(w, a, 3000);
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    before = proxy_connections(w->proxy);
    OK(server_stop(w->process));
    assert_true(NEVER_MS(proxy_connections(w->proxy) > before, STANDS_MS));
    OK(server_continue(w->process));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 3000);
    assert_int_equal(proxy_connections(w->proxy), before);
}

/* The server is killed and restarted. Its data is on disk, so the hold and the
 * queue survive. */
CASE(test_server_killed)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);
    char key[300];
    uint64_t token = token_of(a);

    for (int i = 0; i < 3; i++) {
        etcd_server_kill(&etcd_one);
        OK(etcd_server_again(&etcd_one));
    }
    assert_true(entry(1, key, sizeof(key)));
    world_renews(a);
    assert_int_equal(token_of(a), token);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    COMES_MS(taker_back(t), 3000);
    assert_true(t->token > token);
    taker_end(t);
}

/* The server restarts without its data: it reports to the holder that the lease
 * does not exist, long before the deadline. */
CASE(test_server_comes_back_empty)
{
    hf_lock *a = world_lock(w, etcd_one.url, 60000, 5000, HF_FAIR_DEFAULT),
            *b = world_near(w);

    OK(hf_lock_timed(a, 5000, &w->err));
    OK(etcd_server_empty(&etcd_one));
    COMES(hf_lock_check(a) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    expect_words(w->err.text, "ended the client's lease");
    OK(hf_lock_timed(b, WAIT_MS, &w->err));
    OK(hf_lock_release(b, &w->err));
}
