/* Renewals: those that come to the server when all is over. */
#include "redis_faults_side.h"

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

int run_renew_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_late_renewal_of_a_mutex),  T(test_late_renewal_of_a_string),
        T(test_late_renewal_of_a_reader), T(test_late_renewal_of_a_writer),
        T(test_late_renewal_of_permits),
    };

    return cmocka_run_group_tests_name("redis: renewals", tests, NULL, NULL);
}
