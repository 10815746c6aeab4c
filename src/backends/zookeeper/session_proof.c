/*
 * For how long the session lives, and what is sent so that it does.
 *
 * The session ends when the leader has not heard of us for the timeout. If we
 * are connected to a follower, it tells the leader of its clients with its
 * pings, twice a tick, and not with what it forwards. So a write that was
 * acknowledged proves no more than this: all that the follower had heard of us
 * half a tick before it was sent, the leader knows. From then on the timeout
 * counts, even if the two cannot talk any more. The server does not tell us its
 * tick, but grants no timeout of less than two of them, unless its
 * minSessionTimeout was lowered: then the URL has to say the tick.
 */
#include "session_proof.h"

#include "zookeeper.h"

#define FRESH_PART 4  /* a proof that is younger is as good as new */
#define TOUCHES 8     /* the last of them span two half ticks */
#define DOUBT_PART 20 /* less than that is left: not a good beginning */

hf__time hf__zk_proof_part(const struct zk *z, int of)
{
    return (hf__time)z->timeout_ms * HF__MS / of;
}

/* At most: a session lasts for two ticks at least, or the tick was said. */
static hf__time proof_half_tick(const struct zk *z)
{
    hf__time said = (hf__time)z->tick_ms * HF__MS / 2;

    return said > hf__zk_proof_part(z, 4) ? said : hf__zk_proof_part(z, 4);
}

bool hf__zk_proof_fits(const struct zk *z)
{
    return z->tick_ms <= z->timeout_ms;
}

/* The newest sign of life that the leader knew of when this was sent. */
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

/* We were silent for nearly as long as the timeout: a word of ours is to reach
 * the leader before we rely on it. */
hf__time hf__zk_proof_doubt(const struct zk *z)
{
    if (z->good_until - z->core->now() > hf__zk_proof_part(z, DOUBT_PART))
        return 0;
    return z->core->now() + proof_half_tick(z) + HF__MS;
}

/* The leader has opened the session, or heard of it, after we began to
 * connect. */
void hf__zk_proof_begin(struct zk *z)
{
    z->timeout_ms = (uint32_t)zoo_recv_timeout(z->zh);
    for (unsigned i = 0; i < TOUCHES; i++)
        z->touched[i] = z->connect_at;
    z->proved = z->connect_at;
    z->good_until = z->connect_at + hf__zk_proof_part(z, 1);
}
