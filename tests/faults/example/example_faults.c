/* example_faults [GROUP [PATTERN]]: the faults that any server must survive. */
#include "../../lib/example_server.h"
#include "../any/any_faults.h"

GROUP("late");

static struct example_server server;

static int start(void)
{
    return example_server_start(&server);
}

static void end(void)
{
    example_server_end(&server);
}

static int begin(struct world *w)
{
    w->example = &server;
    w->process = &server.process;
    w->port = server.port;
    snprintf(w->near_url, sizeof(w->near_url), "%s", server.url);
    return 0;
}

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

/* A renewal has timed out and arrives late: the lease must end as if the
 * renewal had not been sent, and not ten minutes later. (late.c checks this
 * with hf_inspect(), which this backend lacks.) */
CASE(test_renewal_is_not_done_late)
{
    hf_lock *lock = world_far(w, 30000, 1000);

    OK(hf_lock_acquire(lock, HOW(HF_FOREVER, .lease_ms = 4000), &w->err));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_hoard(w->proxy);
    EXPECT(HF_EUNKNOWN, hf_lock_renew(lock, 600000, &w->err));
    assert_true(proxy_hoarded(w->proxy) > 0);
    proxy_deliver(w->proxy);
    COMES(holds(w) == 0); /* no release can have arrived yet */
    world_heal(w);
    EXPECT(HF_ELOST, hf_lock_release(lock, &w->err));
}

const struct any_faults any_faults = {
    .op_ms = 400,
    .ttl_ms = 5500,
    .tick_ms = 500,
    .rounds = 500,
    .fair_only = true,
    .holds = holds,
    .take_away = take_away,
};

static const struct world_server example = {
    "example", start, end, begin, mend, left, print_left, is_waited_for};

int main(int argc, char **argv)
{
    return world_main(argc, argv, &example);
}
