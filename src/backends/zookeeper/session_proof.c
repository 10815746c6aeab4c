#include "session_proof.h"

#include "zookeeper.h"

/* A proof that is younger than the timeout divided by this is not repeated. */
#define FRESH_PART 4
/* The length of zk.touched. Its times are at least a quarter of
 * proof_half_tick() apart. Together they therefore cover more than
 * proof_half_tick(), which is what proof_known() needs. */
#define TOUCHES 8
/* No hold begins if less of the session is left than the timeout divided by
 * this. */
#define DOUBT_PART 20

hf__time hf__zk_proof_part(const struct zk *z, int of)
{
    return (hf__time)z->timeout_ms * HF__MS / of;
}

/* Returns an upper bound of half a tick. The session's timeout is at least two
 * ticks, so a quarter of the timeout is such a bound. If half of the tick in
 * the URL is longer, that half is the bound. */
static hf__time proof_half_tick(const struct zk *z)
{
    hf__time said = (hf__time)z->tick_ms * HF__MS / 2;

    return said > hf__zk_proof_part(z, 4) ? said : hf__zk_proof_part(z, 4);
}

bool hf__zk_proof_fits(const struct zk *z)
{
    return z->tick_ms <= z->timeout_ms;
}

/* Returns the newest sign of life from the client that the leader certainly
 * knew of when it acknowledged a write that was sent at `sent_at`. */
static hf__time proof_known(const struct zk *z, hf__time sent_at)
{
    unsigned at = z->touched_at;

    for (unsigned i = 1; i < TOUCHES; i++, at = (at + TOUCHES - 1) % TOUCHES)
        if (z->touched[at] <= sent_at - proof_half_tick(z))
            break;
    return z->touched[at];
}

void hf__zk_proof_heard(struct zk *z, hf__time sent_at, bool by_leader)
{
    z->nudges = 0;
    if (by_leader && sent_at > z->proved) {
        z->proved = sent_at;
        z->good_until = proof_known(z, sent_at) + hf__zk_proof_part(z, 1);
    }
    if (sent_at <
        z->touched[z->touched_at] + proof_half_tick(z) / (TOUCHES / 2))
        return;
    z->touched_at = (z->touched_at + 1) % TOUCHES;
    z->touched[z->touched_at] = sent_at;
}

uint32_t hf__zk_proof_ms(const struct zk *z, hf__time since)
{
    hf__time ms = (z->good_until - since) / HF__MS;

    return ms > 1 ? (uint32_t)ms : 1;
}

bool hf__zk_proof_is_good(const struct zk *z)
{
    hf__time now = z->core->now();

    return now - z->proved < hf__zk_proof_part(z, FRESH_PART) &&
           z->good_until - now > hf__zk_proof_part(z, FRESH_PART);
}

/* Returns 0 if a hold may begin, otherwise the time at which to check again.
 * (If so little is left, the client was silent for nearly the whole timeout.
 * The follower must first report to the leader that the client is back, which
 * takes up to half a tick.) */
hf__time hf__zk_proof_doubt(const struct zk *z)
{
    if (z->good_until - z->core->now() > hf__zk_proof_part(z, DOUBT_PART))
        return 0;
    return z->core->now() + proof_half_tick(z) + HF__MS;
}

void hf__zk_proof_begin(struct zk *z)
{
    z->timeout_ms = (uint32_t)zoo_recv_timeout(z->zh);
    for (unsigned i = 0; i < TOUCHES; i++)
        z->touched[i] = z->connect_at;
    z->proved = z->connect_at;
    z->good_until = z->connect_at + hf__zk_proof_part(z, 1);
}
