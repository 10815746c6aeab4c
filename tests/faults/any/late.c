/*
 * A request that timed out is not executed later: after a call has reported
 * that there was no reply, its request must not take effect when the server can
 * be reached again. Either the request was never sent (UNSENT), or it reaches
 * the server after all requests that followed it (LATE).
 */
#include "any_faults.h"

#include <string.h>

GROUP("late");

enum { OP_MS = 1000 };

enum way { UNSENT, LATE };

/* A call of the client behind the proxy, and how to tell whether the call
 * changed anything at the server. */
struct verb {
    int (*call)(hf_client *, hf_error *);
    void (*prepare)(struct world *, hf_client *near);
    bool (*is_untouched)(hf_client *near);
    void (*tidy)(struct world *, hf_client *near);
};

static void begin(struct world *w, enum way way)
{
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    if (way == UNSENT)
        proxy_cut(w->proxy);
    else
        proxy_hoard(w->proxy);
}

static bool can_ask(hf_client *far)
{
    hf_info *info = NULL;
    int rc = hf_inspect(far, "n", 1, &info, NULL);

    hf_info_free(info);
    return rc == 0;
}

static void end(struct world *w, enum way way)
{
    if (way == LATE) {
        assert_true(proxy_hoarded(w->proxy) > 0);
        proxy_deliver(w->proxy);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    COMES(can_ask(w->clients[0]));
}

static void not_done_later(struct world *w, const struct verb *verb,
                           enum way way)
{
    hf_client *near;

    world_far(w, any_faults.ttl_ms, OP_MS);
    /* This client has a short TTL too, so whatever it leaves at the server
     * expires soon. */
    world_lock(w, w->near_url, any_faults.ttl_ms, OP_MS, HF_FAIR_DEFAULT);
    near = w->clients[1];
    assert_true(can_ask(w->clients[0])); /* loads the scripts */
    begin(w, way);
    /* The first request may find the connection broken. When the last request
     * has timed out, so have the earlier ones. */
    for (int i = 0; i < 3; i++) {
        int rc = verb->call(w->clients[0], &w->err);

        if (rc != HF_EUNKNOWN)
            fail_msg("%d: %s", rc, w->err.text);
    }
    verb->prepare(w, near);
    end(w, way);
    assert_true(verb->is_untouched(near));
    assert_true(NEVER_MS(!verb->is_untouched(near), 300));
    verb->tidy(w, near);
    world_is_clean(w);
}

static int call_break(hf_client *c, hf_error *err)
{
    return hf_break(c, "n", 1, err);
}

static void hold(struct world *w, hf_client *near)
{
    OK(hf_lock_acquire(w->locks[1], NULL, &w->err));
}

static bool is_held(hf_client *near)
{
    hf_info *info = NULL;
    bool held =
        !hf_inspect(near, "n", 1, &info, NULL) && info->holders_len == 1;

    hf_info_free(info);
    return held;
}

static void let_go(struct world *w, hf_client *near)
{
    OK(hf_lock_release(w->locks[1], &w->err));
}

static const struct verb breaks = {call_break, hold, is_held, let_go};

CASE_IS(test_break_that_was_not_sent, not_done_later(w, &breaks, UNSENT))
CASE_IS(test_break_that_comes_late, not_done_later(w, &breaks, LATE))

static hf_latch *latch_of(hf_client *c)
{
    hf_latch *latch = NULL;

    OK(hf_latch_new(c, "l", 1, &latch, NULL));
    return latch;
}

static uint64_t count_of(hf_client *c)
{
    hf_latch *latch = latch_of(c);
    uint64_t count = 99;

    OK(hf_latch_get(latch, &count, NULL));
    hf_latch_free(latch);
    return count;
}

static int call_set(hf_client *c, hf_error *err)
{
    hf_latch *latch = latch_of(c);
    int rc = hf_latch_set(latch, 5, err);

    hf_latch_free(latch);
    return rc;
}

static int call_down(hf_client *c, hf_error *err)
{
    hf_latch *latch = latch_of(c);
    int rc = hf_latch_down(latch, NULL, err);

    hf_latch_free(latch);
    return rc;
}

static void set_three(struct world *w, hf_client *near)
{
    hf_latch *latch = latch_of(near);

    OK(hf_latch_set(latch, 3, &w->err));
    hf_latch_free(latch);
}

static bool is_three(hf_client *near)
{
    return count_of(near) == 3;
}

static void down_to_zero(struct world *w, hf_client *near)
{
    while (count_of(near))
        assert_int_equal(call_down(near, &w->err), 0);
}

static void leave_it(struct world *w, hf_client *near)
{
}

static bool is_zero(hf_client *near)
{
    return count_of(near) == 0;
}

static const struct verb sets = {call_set, leave_it, is_zero, leave_it};
static const struct verb downs = {call_down, set_three, is_three, down_to_zero};

CASE_IS(test_set_that_was_not_sent, not_done_later(w, &sets, UNSENT))
CASE_IS(test_set_that_comes_late, not_done_later(w, &sets, LATE))
CASE_IS(test_down_that_was_not_sent, not_done_later(w, &downs, UNSENT))
CASE_IS(test_down_that_comes_late, not_done_later(w, &downs, LATE))

struct done {
    bool called;
    int result;
};

static void note(void *arg, hf_latch *latch, int result)
{
    struct done *done = arg;

    *done = (struct done){true, result};
}

static bool is_called(hf_client *c, const struct done *done)
{
    hf_client_dispatch(c);
    return done->called;
}

static int result_of(hf_client *c, hf_latch *latch, const struct done *done)
{
    COMES(is_called(c, done));
    OK(hf_latch_free(latch));
    return done->result;
}

static int call_set_async(hf_client *c, hf_error *err)
{
    hf_latch *latch = latch_of(c);
    struct done done = {0};

    OK(hf_latch_set_async(latch, 5, note, &done, err));
    return result_of(c, latch, &done);
}

static int call_down_async(hf_client *c, hf_error *err)
{
    hf_latch *latch = latch_of(c);
    struct done done = {0};

    OK(hf_latch_down_async(latch, NULL, note, &done, err));
    return result_of(c, latch, &done);
}

static const struct verb async_sets = {call_set_async, leave_it, is_zero,
                                       leave_it};
static const struct verb async_downs = {call_down_async, set_three, is_three,
                                        down_to_zero};

CASE_IS(test_async_set_that_was_not_sent,
        not_done_later(w, &async_sets, UNSENT))
CASE_IS(test_async_set_that_comes_late, not_done_later(w, &async_sets, LATE))
CASE_IS(test_async_down_that_was_not_sent,
        not_done_later(w, &async_downs, UNSENT))
CASE_IS(test_async_down_that_comes_late, not_done_later(w, &async_downs, LATE))

static struct world *asked; /* the world whose second client, without a proxy,
                               holds "n" */

static int call_ask(hf_client *c, hf_error *err)
{
    return hf_ask(c, "n", 1, err);
}

static void hold_and_listen(struct world *w, hf_client *near)
{
    asked = w;
    hold(w, near);
}

/* Some backends deliver hf_ask() with a renewal, so this function renews. A
 * renewal that takes too long is not a failure. */
static bool is_not_asked(hf_client *near)
{
    int rc = hf_lock_renew(asked->locks[1], 0, &asked->err);

    assert_true(rc == 0 || rc == HF_EUNKNOWN);
    return !world_heard_wish(asked, 1) && is_held(near);
}

static const struct verb asks = {call_ask, hold_and_listen, is_not_asked,
                                 let_go};

static void ask_is_not_done_later(struct world *w, enum way way)
{
    hf_client *c;
    int caps;

    OK(hf_open(w->near_url, NULL, &c, &w->err));
    caps = hf_client_caps(c, HF_MUTEX);
    if (!(caps & HF_CAP_WANTED))
        EXPECT(HF_ENOTSUP, hf_ask(c, "n", 1, NULL));
    hf_close(c);
    if (caps & HF_CAP_WANTED)
        not_done_later(w, &asks, way);
}

CASE_IS(test_ask_that_was_not_sent, ask_is_not_done_later(w, UNSENT))
CASE_IS(test_ask_that_comes_late, ask_is_not_done_later(w, LATE))

/* A put that cannot be sent must not be stored in the client until it
 * reconnects. (LATE is not tested: MySQL refuses a put that arrives after a
 * time limit, but etcd and ZooKeeper execute a late put if the hold still
 * exists.) */
CASE(test_put_that_was_not_sent)
{
    hf_lock *far = world_far(w, any_faults.ttl_ms, OP_MS);

    if (!any_faults.takes_value) {
        EXPECT(HF_ENOTSUP, hf_lock_put(far, "v", 1, "x", 1, NULL));
        return;
    }
    OK(hf_lock_acquire(far, NULL, &w->err));
    OK(hf_lock_put(far, "v", 1, "first", 5, &w->err));
    begin(w, UNSENT);
    for (int i = 0; i < 3; i++) {
        int rc = hf_lock_put(far, "v", 1, "late", 4, &w->err);

        if (rc != HF_EUNKNOWN && rc != HF_EBACKEND)
            fail_msg("%d: %s", rc, w->err.text);
    }
    end(w, UNSENT);
    hf_lock_release(far, NULL); /* by now the earlier puts have timed out */
    assert_true(any_faults.takes_value(w, "v", "first"));
}
