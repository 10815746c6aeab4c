/* example_faults [GROUP [PATTERN]]: what has to go well with any server. */
#include "../../lib/example_server.h"
#include "../any/any_faults.h"

static struct example_server server;

static int group_begin(void **state)
{
    (void)state;
    return example_server_start(&server);
}

static int group_end(void **state)
{
    (void)state;
    example_server_end(&server);
    return 0;
}

static int begin(struct world *w)
{
    w->example = &server;
    w->port = server.port;
    snprintf(w->near_url, sizeof(w->near_url), "%s", server.url);
    return 0;
}

/* What a failed case has left behind must not fail the next. */
static int mend(struct world *w)
{
    example_server_continue(w->example);
    return example_server_break(w->example);
}

static long left(struct world *w)
{
    return example_server_holds(w->example) + example_server_places(w->example);
}

static void print_left(struct world *w)
{
    fprintf(stderr, "left behind: %ld\n", left(w));
}

static int setup(void **state)
{
    static const struct world_server kind = {"example", begin, mend, left,
                                             print_left};

    return world_begin(state, &kind);
}

static long holds(struct world *w)
{
    return example_server_holds(w->example);
}

static bool is_waited_for(struct world *w)
{
    return example_server_places(w->example) == 1;
}

static int take_away(struct world *w)
{
    return example_server_break(w->example);
}

static int stop(struct world *w)
{
    return example_server_stop(w->example);
}

static int go_on(struct world *w)
{
    return example_server_continue(w->example);
}

/* Its caller was told that there was no answer. The lease ends when it would
 * have, and not ten minutes later. (late.c looks by hf_inspect().) */
static void test_renewal_is_not_done_late(void **state)
{
    struct world *w = *state;
    hf_lock *lock = world_far(w, 30000, 1000);
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;

    how.lease_ms = 4000;
    assert_int_equal(hf_lock_acquire(lock, &how, &w->err), 0);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_hoard(w->proxy);
    assert_int_equal(hf_lock_renew(lock, 600000, &w->err), HF_EUNKNOWN);
    assert_true(proxy_hoarded(w->proxy) > 0);
    proxy_deliver(w->proxy);
    assert_true(WAIT_FOR(holds(w) == 0)); /* no release can get there yet */
    world_heal(w);
    assert_int_equal(hf_lock_release(lock, &w->err), HF_ELOST);
    world_is_clean(w);
}

static int run_late(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_renewal_is_not_done_late, setup,
                                        world_end),
    };

    return cmocka_run_group_tests_name("late", tests, group_begin, group_end);
}

const struct any_faults any_faults = {
    .setup = setup,
    .begin = group_begin,
    .end = group_end,
    .op_ms = 400,
    .ttl_ms = 5500,
    .tick_ms = 500,
    .rounds = 500,
    .fair_only = true,
    .holds = holds,
    .is_waited_for = is_waited_for,
    .take_away = take_away,
    .stop = stop,
    .go_on = go_on,
};

int main(int argc, char **argv)
{
    static const struct world_group groups[] = {
        {"any", run_any_faults},
        {"loss", run_any_loss},
        {"late", run_late},
        {"names", run_any_names},
    };

    return world_main(argc, argv, groups, sizeof(groups) / sizeof(*groups));
}
