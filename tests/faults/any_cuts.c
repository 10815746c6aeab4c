/* Connections that break in the middle of an answer, and while somebody
 * waits. */
#include "any_faults.h"

void any_cut_answers(struct world *w, hf_lock *lock, enum proxy_mode mode,
                     long most, long step)
{
    uint64_t last = 0;

    world_free_for_all(w, lock); /* no answers but those that are meant */
    for (long n = 0; n < most; n += step) {
        proxy_set(w->proxy, mode, n);
        if (hf_lock_timed(lock, 8000, &w->err))
            fail_msg("after %ld bytes: %s", n, w->err.text);
        assert_int_equal(any_faults.holds(w), 1);
        assert_true(token_of(lock) > last);
        last = token_of(lock);
        proxy_set(w->proxy, mode, n % 40);
        if (hf_lock_release(lock, &w->err))
            fail_msg("release, after %ld bytes: %s", n % 40, w->err.text);
        assert_true(WAIT_FOR(any_faults.holds(w) <= 0));
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_is_clean(w);
}

void any_cut_waiter(struct world *w, hf_lock *holder, hf_lock *waiter)
{
    struct taker *t;

    assert_int_equal(hf_lock_timed(holder, 5000, &w->err), 0);
    t = taker_start(w, waiter, 20000);
    assert_true(WAIT_FOR(any_faults.is_waited_for(w)));
    for (int i = 0; i < 5; i++) {
        proxy_cut(w->proxy);
        wait_tick();
    }
    assert_int_equal(hf_lock_release(holder, NULL), 0);
    taker_gets_it(t, 3000);
    world_is_clean(w);
}
