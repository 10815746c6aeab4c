/* Network faults: replies that are swallowed, late or cut in the middle. */
#include "../any/any_faults.h"
#include "zk_faults.h"

GROUP("net");

#define OP_MS 1000

/* The connection breaks right after a create whose reply is lost: the client
 * finds its node, uses it and creates no second one. */
CASE(test_created_then_cut_is_adopted)
{
    hf_lock *a = world_far(w, 30000, 5000);
    struct taker *t;

    world_free_for_all(w, a);
    /* Because of this node of another lock, the server does not delete the
     * parent, a container. */
    create_below(w, NODE, NODE "/x", ZOO_CONTAINER, NULL, 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    world_has_entries(w, 2);
    world_heal(w);
    taker_has_it(t, 4000);
    assert_int_equal(zk_server_children(w->zk, NODE), 2);
    OK(zk_hand_delete(zk_server_hand(w->zk), NODE "/x"));
    taker_gives(t);
}

/* The reply to the create of a waiter's entry is lost: the waiter finds its
 * entry and keeps its place. */
CASE(test_queued_then_cut_keeps_its_place)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    char path[256], own[256];
    struct taker *t;

    world_free_for_all(w, b);
    OK(hf_lock_timed(a, 5000, NULL));
    world_first_entry(w, path, sizeof(path));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, b, 10000);
    world_has_entries(w, 2);
    world_heal(w);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, 4000);
    assert_int_equal(zk_server_children(w->zk, NODE), 1);
    world_first_entry(w, own, sizeof(own));
    assert_string_not_equal(own, path);
    taker_end(t);
}

CASE(test_connection_reset_while_waiting)
{
    hf_lock *a = world_near(w);

    any_cut_waiter(w, a, world_far(w, 30000, 5000));
}

/* The holder releases while the proxy lets no event reach the waiter. */
CASE(test_release_while_the_waiter_is_away)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    struct taker *t = taker_behind(w, a, b, 20000);

    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    OK(hf_lock_release(a, NULL));
    assert_true(NEVER_MS(taker_back(t), 300));
    proxy_set(w->proxy, PROXY_PASS, 0);
    taker_gets_it(t, 3000);
}

CASE(test_open_says_at_once_what_is_wrong)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    int64_t began;

    opt.connect_timeout_ms = 500;
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    EXPECT(HF_EBACKEND, hf_open(w->far_url, &opt, &c, &w->err));
    assert_null(c);
    assert_true(w->err.text[0] != '\0');
    assert_true(w->err.may_pass);
    assert_true(wait_within(began, 1500));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    began = wait_fair();
    w->err.may_pass = 0;
    EXPECT(HF_EBACKEND, hf_open(w->far_url, &opt, &c, &w->err));
    assert_true(w->err.may_pass);
    assert_true(wait_within(began, 1500));
}

/* If hf_close() cannot reach the server, the hold ends with the session's
 * timeout. */
CASE(test_close_in_a_black_hole)
{
    enum { TTL_MS = 6000 };
    hf_lock *a = world_far(w, TTL_MS, OP_MS), *b = world_near(w);
    int64_t taken, began;
    int rc;

    /* Repeats the call: on a busy machine the server may not answer in
     * OP_MS. */
    COMES(hf_lock_timed(a, 5000, &w->err) == 0);
    taken = wait_now();
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    rc = hf_close(w->clients[0]);
    w->clients[0] = NULL;
    /* If the machine stalled until the hold was lost, hf_close() had nothing to
     * release and may succeed. */
    if (rc || wait_ms_since(taken) < TTL_MS / 2)
        assert_int_equal(rc, HF_EUNKNOWN);
    assert_true(wait_within(began, OP_MS + 1200));
    world_takes(w, b, TTL_MS + ZK_TICK_MS + 1000);
    OK(hf_lock_release(b, NULL));
}

/* A break that timed out must not break a later hold. */
CASE(test_break_in_an_outage_is_not_done_later)
{
    hf_lock *b;
    hf_info *info = NULL;

    world_far(w, 30000, OP_MS);
    b = world_near(w);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    /* At this request the client finds that the connection is closed. */
    EXPECT(HF_EUNKNOWN, hf_break(w->clients[0], "m", 1, &w->err));
    EXPECT(HF_EUNKNOWN, hf_break(w->clients[0], "n", 1, &w->err));
    /* Once this third break has timed out, so have the two before it. */
    EXPECT(HF_EUNKNOWN, hf_break(w->clients[0], "m", 1, &w->err));
    OK(hf_lock_timed(b, 5000, &w->err));
    proxy_set(w->proxy, PROXY_PASS, 0);
    COMES_MS(!hf_inspect(w->clients[0], "n", 1, &info, NULL), 4000);
    assert_int_equal(info->holders_len, 1);
    hf_info_free(info);
    OK(hf_inspect(w->clients[0], "n", 1, &info, &w->err));
    assert_int_equal(info->holders_len, 1);
    hf_info_free(info);
    OK(hf_lock_release(b, &w->err));
}
