/*
 * How long the client may rely on its ZooKeeper session, tested against a model
 * of the servers. A follower hears from the client, and reports that to the
 * leader twice a tick. The leader ends the session one timeout after the last
 * report. The follower and the leader may lose each other at any time after a
 * write was acknowledged: from then on the client must not rely on the session
 * for longer than the leader keeps it.
 */
#include "../../cases.h"
#include "backends/zookeeper/session_proof.h"

enum { TURNS = 2000, REQUESTS = 60 };

static struct {
    uint64_t seed;
    hf__time now;
    int timeout_ms;
} model;

static hf__time now(void)
{
    return model.now;
}

static void due(hf_client *c, hf__time at)
{
}

static const struct hf__core core = {.now = now, .due = due};

int zoo_recv_timeout(zhandle_t *zh)
{
    return model.timeout_ms;
}

static hf__time chance(hf__time below)
{
    model.seed = model.seed * 6364136223846793005u + 1442695040888963407u;
    return (hf__time)((model.seed >> 16) % (uint64_t)below);
}

/* Returns the time of the last report to the leader, if the follower heard from
 * the client at the times `heard` and reports at `phase` and every half tick
 * after it. */
static hf__time leader_knew(const hf__time *heard, int len, hf__time phase,
                            hf__time half_tick)
{
    hf__time sent = heard[len - 1], last = heard[0]; /* session opened */

    for (int i = 0; i < len; i++) {
        hf__time pings = (heard[i] - phase + half_tick - 1) / half_tick;
        hf__time at = phase + pings * half_tick;

        if (at <= sent && at > last)
            last = at;
    }
    return last;
}

/* Returns how often the client relies on the session for longer than the leader
 * keeps it. */
static int mistakes(uint32_t timeout_ms, uint32_t tick_ms, uint32_t said_ms)
{
    hf__time heard[REQUESTS], half = tick_ms * HF__MS / 2;
    struct zk z = {.core = &core, .tick_ms = said_ms};
    hf__time phase;
    int wrong = 0;

    model.timeout_ms = (int)timeout_ms;
    model.now += 1000000 * HF__MS;
    z.connect_at = heard[0] = model.now;
    phase = model.now - chance(half);
    hf__zk_proof_begin(&z);
    for (int i = 1; i < REQUESTS; i++) {
        bool is_write = chance(2) == 0;

        model.now += 1 + chance(timeout_ms * HF__MS / 4);
        heard[i] = model.now;
        hf__zk_proof_heard(&z, model.now, is_write);
        wrong +=
            is_write && z.good_until > leader_knew(heard, i + 1, phase, half) +
                                           timeout_ms * HF__MS;
    }
    return wrong;
}

/* A server grants no timeout below two ticks, unless it is configured to. */
CASE(test_life_of_two_ticks_or_more)
{
    for (int i = 0; i < TURNS; i++) {
        uint32_t tick = 2 + (uint32_t)chance(3000);

        assert_int_equal(mistakes(2 * tick + (uint32_t)chance(60000), tick, 0),
                         0);
        assert_int_equal(mistakes(2 * tick, tick, 0), 0);
        assert_int_equal(mistakes(2 * tick, tick, tick), 0);
    }
}

/* A server whose minSessionTimeout is below two ticks may grant a timeout below
 * two ticks. The client must then be configured with the length of the tick. */
CASE(test_life_of_less_than_two_ticks)
{
    int without = 0;

    for (int i = 0; i < TURNS; i++) {
        uint32_t tick = 10 + (uint32_t)chance(3000);
        uint32_t timeout = tick + (uint32_t)chance(tick);

        assert_int_equal(mistakes(timeout, tick, tick), 0);
        without += mistakes(timeout, tick, 0);
    }
    assert_true(without > 0); /* the model detects mistakes */
}

/* A configured tick that is too short does no harm. */
CASE(test_life_with_a_tick_that_is_too_small)
{
    for (int i = 0; i < TURNS; i++)
        assert_int_equal(mistakes(4000, 2000, 1), 0);
}

/* With a tick longer than the session timeout no lock could be held, so
 * hf__zk_proof_fits() returns false. */
CASE(test_life_needs_a_tick)
{
    struct zk z = {.core = &core, .tick_ms = 2000};

    model.timeout_ms = 2000;
    hf__zk_proof_begin(&z);
    assert_true(hf__zk_proof_fits(&z));
    model.timeout_ms = 1999;
    hf__zk_proof_begin(&z);
    assert_false(hf__zk_proof_fits(&z));
    z.tick_ms = 0;
    assert_true(hf__zk_proof_fits(&z));
}

CASES_MAIN(NULL, NULL);
