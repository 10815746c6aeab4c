/* The way to the server: answers that are cut, late or lost; compaction; a
 * server that is stopped for a moment, or killed. */
#include "etcd_faults.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 30000 };

/* ---- cut ------------------------------------------------------------------
 */

static void test_reset_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 5000), PROXY_RESET, 200,
                    9);
}

static void test_half_close_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 5000), PROXY_HALF_CLOSE,
                    200, 9);
}

static void test_connection_reset_while_waiting(void **state)
{
    hf_lock *a = world_near(*state);

    any_cut_waiter(*state, a, world_far(*state, 30000, 5000));
}

/* ---- compaction -----------------------------------------------------------
 */

/* All that was is forgotten; some more has happened. */
static void compact(void)
{
    char out[300], *at;

    for (int i = 0; i < 3; i++)
        ctl("put elsewhere %d", i);
    ctl("del elsewhere");
    assert_int_equal(
        etcd_server_ctl(&etcd_one, "get x -w json", out, sizeof(out)), 0);
    at = strstr(out, "\"revision\":");
    assert_non_null(at);
    ctl("compact --physical %ld", strtol(at + 11, NULL, 10));
}

static void test_compaction_while_waiting(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
        t = taker_start(w, b, WAIT_MS);
        has_entries(2);
        compact();
        assert_false(taker_back(t));
        assert_int_equal(hf_lock_check(a), 0);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
        taker_gets_it(t, 1000);
    }
    world_is_clean(w);
}

/* The waiter cannot hear what happens; when it is back, the server has
 * forgotten it. */
static void released_unheard(struct world *w, bool compacts)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    if (compacts)
        compact();
    assert_false(taker_back(t));
    world_heal(w);
    taker_gets_it(t, 3000);
    world_is_clean(w);
}

static void test_release_while_the_waiter_is_away(void **state)
{
    released_unheard(*state, false);
}

static void test_compaction_while_the_waiter_is_away(void **state)
{
    released_unheard(*state, true);
}

/* ---- asked ----------------------------------------------------------------
 */

/* The holder is away when it is asked: it hears it when it is back, unless the
 * server has forgotten it; and it hears what is asked from then on. */
static void asked_unheard(struct world *w, bool compacts)
{
    hf_lock *a = world_far(w, 30000, 5000);

    world_near(w);
    world_takes(w, a, WAIT_MS);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_int_equal(hf_ask(w->clients[1], "n", 1, &w->err), 0);
    if (compacts)
        compact();
    world_heal(w);
    if (!compacts)
        assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    __atomic_store_n(&w->ears[0].wanted, 0, __ATOMIC_RELAXED);
    assert_true(WAIT_FOR(hf_ask(w->clients[1], "n", 1, &w->err) == 0 &&
                         world_heard_wish(w, 0)));
    assert_int_equal(hf_lock_check(a), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

static void test_ask_while_the_holder_is_away(void **state)
{
    asked_unheard(*state, false);
}

static void test_compaction_while_the_holder_is_away(void **state)
{
    asked_unheard(*state, true);
}

/* ---- slow -----------------------------------------------------------------
 */

/* The lease is known to live for as long as was asked for before the answer
 * was on its way. */
static void test_deadline_counts_from_sending(void **state)
{
    enum { TTL_MS = 8000, DELAY_MS = 800 };
    struct world *w = *state;
    hf_lock *a = world_far(w, TTL_MS, 5000);
    int64_t last = 0, next, until;

    proxy_set(w->proxy, PROXY_DELAY, DELAY_MS);
    assert_int_equal(hf_lock_timed(a, WAIT_MS, &w->err), 0);
    until = wait_now() + 10LL * TTL_MS * 1000000;
    for (int changes = 0; changes < 4;) {
        assert_true(wait_now() < until);
        next = deadline_of(a);
        /* Of the grant of the lease nothing was delayed. */
        if (last && next != last) {
            assert_true((next - wait_now()) / 1000000 <= TTL_MS - DELAY_MS);
            changes++;
        }
        last = next;
        wait_tick();
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* Each answer comes after the request was given up: the same is asked again,
 * and makes nothing twice. */
static void test_answers_later_than_the_limit(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 5000), *b = world_near(w);
    struct taker *t;

    world_free_for_all(w, a);
    proxy_set(w->proxy, PROXY_DELAY, 1800);
    t = taker_start(w, a, 20000);
    assert_true(WAIT_FOR(w->server->left(w) == 1));
    assert_true(NEVER_MS(w->server->left(w) != 1, 4000));
    assert_int_equal(hf_lock_try(b, NULL), HF_EBUSY);
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    assert_int_equal(w->server->left(w), 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

/* The server stands still, longer than a request waits for it, while some ask
 * for the lock, hold it and let it go. */
static void test_server_stands_for_two_seconds(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    int64_t began;
    struct taker *t;

    for (int i = 0; i < 3; i++) {
        if (i == 1)
            assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
        assert_int_equal(any_faults.stop(w), 0);
        began = wait_now();
        t = taker_start(w, b, WAIT_MS);
        if (i == 1)
            assert_int_equal(hf_lock_release_nowait(a, &w->err), 0);
        assert_true(WAIT_FOR(wait_ms_since(began) > 2000));
        assert_false(taker_back(t));
        assert_int_equal(any_faults.go_on(w), 0);
        assert_true(WAIT_FOR_MS(taker_back(t), 3000));
        assert_int_equal(t->rc, 0);
        assert_int_equal(hf_lock_try(a, NULL), HF_EBUSY);
        assert_int_equal(w->server->left(w), 1);
        taker_end(t);
        assert_int_equal(t->release_rc, 0);
        world_is_clean(w);
    }
}

/* Two addresses of one server are no reason to look for another one while it
 * stands. */
static void test_server_of_two_addresses_stands(void **state)
{
    enum { OP_MS = 15000, STANDS_MS = 5000 }; /* a PING goes out every 2 s */
    struct world *w = *state;
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
    assert_int_equal(any_faults.stop(w), 0);
    assert_true(NEVER_MS(proxy_connections(w->proxy) > before, STANDS_MS));
    assert_int_equal(any_faults.go_on(w), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 3000);
    assert_int_equal(proxy_connections(w->proxy), before);
    world_is_clean(w);
}

/* ---- killed ---------------------------------------------------------------
 */

/* What it had is on its disk: the hold is kept, and so is the queue. */
static void test_server_killed(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    uint64_t token;
    struct taker *t;
    char key[300];

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    token = token_of(a);
    t = taker_start(w, b, WAIT_MS);
    has_entries(2);
    for (int i = 0; i < 3; i++) {
        etcd_server_kill(&etcd_one);
        assert_int_equal(etcd_server_again(&etcd_one), 0);
    }
    assert_true(entry(1, key, sizeof(key)));
    world_renews(a);
    assert_int_equal(token_of(a), token);
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_true(t->token > token);
    taker_end(t);
    world_is_clean(w);
}

/* The holder hears of it from the server, long before its deadline. */
static void test_server_comes_back_empty(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, etcd_one.url, 60000, 5000, HF_FAIR_DEFAULT),
            *b = world_near(w);

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    assert_int_equal(etcd_server_empty(&etcd_one), 0);
    assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
    assert_int_equal(hf_lock_release(a, &w->err), HF_ELOST);
    assert_non_null(strstr(w->err.text, "ended the client's lease"));
    assert_int_equal(hf_lock_timed(b, WAIT_MS, &w->err), 0);
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    world_is_clean(w);
}

int run_net_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, etcd_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_reset_in_the_middle_of_an_answer),
        T(test_half_close_in_the_middle_of_an_answer),
        T(test_connection_reset_while_waiting),
        T(test_compaction_while_waiting),
        T(test_release_while_the_waiter_is_away),
        T(test_ask_while_the_holder_is_away),
        T(test_compaction_while_the_holder_is_away),
        T(test_compaction_while_the_waiter_is_away),
        T(test_deadline_counts_from_sending),
        T(test_answers_later_than_the_limit),
        T(test_server_stands_for_two_seconds),
        T(test_server_of_two_addresses_stands),
        T(test_server_killed),
        T(test_server_comes_back_empty),
    };

    return cmocka_run_group_tests_name("etcd: the way", tests, etcd_group,
                                       etcd_group_end);
}
