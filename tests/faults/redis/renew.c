/* Renewals: those that come to the server when all is over, and those that
 * wait for a connection. */
#include "side.h"

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};

static hf_lock *lock_by(struct world *w, const char *url, const char *options,
                        const struct side *s)
{
    char text[128];

    snprintf(text, sizeof(text), "%s%s", url, options);
    return lock_of(w, text, 30000, 1000, s->kind);
}

/* Its caller was told that there was no answer. The lease ends when it would
 * have, and not ten minutes later. */
static void late_renewal(struct world *w, const char *options,
                         const struct side *s)
{
    hf_lock *a = lock_by(w, w->far_url, options, s);
    hf_lock *b = lock_by(w, w->redis->url, options, s);
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;

    how.mode = s->mode;
    how.permits = s->permits;
    how.lease_ms = 4000;
    assert_int_equal(hf_lock_acquire(a, &how, &w->err), 0);
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0); /* it has the script */
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_hoard(w->proxy);
    assert_int_equal(hf_lock_renew(a, 600000, &w->err), HF_EUNKNOWN);
    assert_true(proxy_hoarded(w->proxy) > 0);
    proxy_deliver(w->proxy);
    assert_int_equal(take_other(b, s, 20000, &w->err), 0);
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    world_heal(w);
    assert_int_equal(hf_lock_release(a, &w->err), HF_ELOST);
    world_is_clean(w);
}

static void test_late_renewal_of_a_mutex(void **state)
{
    late_renewal(*state, "", &mutex);
}

static void test_late_renewal_of_a_string(void **state)
{
    late_renewal(*state, "?dialect=string", &mutex);
}

static void test_late_renewal_of_a_reader(void **state)
{
    late_renewal(*state, "", &reads);
}

static void test_late_renewal_of_a_writer(void **state)
{
    late_renewal(*state, "", &writes);
}

static void test_late_renewal_of_permits(void **state)
{
    late_renewal(*state, "", &permits);
}

/* For a renewal a new connection has a sixth of the lease, and no server is so
 * quick here. When the hold is over there is time enough to connect again. */
static bool can_ask(hf_client *c)
{
    hf_info *info = NULL;
    int rc = hf_inspect(c, "n", 1, &info, NULL);

    hf_info_free(info);
    return rc == 0;
}

static void test_connects_again_when_the_hold_is_over(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 1500, 3000);

    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    proxy_set(w->proxy, PROXY_DELAY, 600);
    proxy_cut(w->proxy);
    assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
    assert_int_equal(hf_lock_release(a, &w->err), HF_ELOST);
    assert_true(WAIT_FOR(can_ask(w->clients[0])));
    world_heal(w);
    world_free_for_all(w, a);
    world_is_clean(w);
}

int run_renew_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_late_renewal_of_a_mutex),
        T(test_late_renewal_of_a_string),
        T(test_late_renewal_of_a_reader),
        T(test_late_renewal_of_a_writer),
        T(test_late_renewal_of_permits),
        T(test_connects_again_when_the_hold_is_over),
    };

    return cmocka_run_group_tests_name("redis: renewals", tests, NULL, NULL);
}
