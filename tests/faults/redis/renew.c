/* Renewals that reach the server too late, and a client that reconnects after
 * its renewals could not connect. */
#include "side.h"

GROUP("renew");

static hf_lock *lock_by(struct world *w, const char *url, const char *options,
                        const struct side *s)
{
    return lock_of(w, text_of("%s%s", url, options), 30000, 1000, s->kind);
}

/* A renewal for ten minutes times out and reaches the server late. The lease
 * must end as if that renewal had not been sent. */
static void late_renewal(struct world *w, const char *options,
                         const struct side *s)
{
    hf_lock *a = lock_by(w, w->far_url, options, s);
    hf_lock *b = lock_by(w, w->redis->url, options, s);

    OK(hf_lock_acquire(a,
                       HOW(HF_FOREVER, .mode = s->mode, .permits = s->permits,
                           .lease_ms = 4000),
                       &w->err));
    OK(hf_lock_renew(a, 0, &w->err)); /* loads the script */
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_hoard(w->proxy);
    EXPECT(HF_EUNKNOWN, hf_lock_renew(a, 600000, &w->err));
    assert_true(proxy_hoarded(w->proxy) > 0);
    proxy_deliver(w->proxy);
    OK(take_other(b, s, 20000, &w->err));
    OK(hf_lock_release(b, &w->err));
    world_heal(w);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
}

CASE_IS(test_late_renewal_of_a_mutex, late_renewal(w, "", &mutex))
CASE_IS(test_late_renewal_of_a_string,
        late_renewal(w, "?dialect=string", &mutex))
CASE_IS(test_late_renewal_of_a_reader, late_renewal(w, "", &reads))
CASE_IS(test_late_renewal_of_a_writer, late_renewal(w, "", &writes))
CASE_IS(test_late_renewal_of_permits, late_renewal(w, "", &permits))

static bool can_ask(hf_client *c)
{
    hf_info *info = NULL;
    int rc = hf_inspect(c, "n", 1, &info, NULL);

    hf_info_free(info);
    return rc == 0;
}

/* While the client holds the lock, a connection attempt may take only a sixth
 * of the TTL. That is too short here, so the hold is lost. Once the hold has
 * ended, the client has enough time to reconnect. */
CASE(test_connects_again_when_the_hold_is_over)
{
    hf_lock *a = world_far(w, 1500, 3000);

    OK(hf_lock_acquire(a, NULL, &w->err));
    proxy_set(w->proxy, PROXY_DELAY, 600);
    proxy_cut(w->proxy);
    COMES(hf_lock_check(a) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    COMES(can_ask(w->clients[0]));
    world_heal(w);
    world_free_for_all(w, a);
}
