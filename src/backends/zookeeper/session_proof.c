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
#include "zookeeper.h"

#define BEAT_PART 6   /* of the timeout: proofs, while somebody waits */
#define FRESH_PART 4  /* a proof that is younger is as good as new */
#define TOUCHES 8     /* the last of them span two half ticks */
#define DOUBT_PART 20 /* less than that is left: not a good beginning */
#define TOUCH_PART 4  /* a sign of life, at least */
#define NUDGE (200 * HF__MS)
#define NUDGES_MAX 5           /* each after twice the time */
#define IN_USE (1000 * HF__MS) /* since a thread has sent something */
#define STARVED (10 * HF__MS)

static hf__time part(const struct zk *z, int of)
{
    return (hf__time)z->timeout_ms * HF__MS / of;
}

/* At most: a session lasts for two ticks at least, or the tick was said. */
static hf__time half_tick(const struct zk *z)
{
    hf__time said = (hf__time)z->tick_ms * HF__MS / 2;

    return said > part(z, 4) ? said : part(z, 4);
}

bool hf__zk_life_fits(const struct zk *z)
{
    return z->tick_ms <= z->timeout_ms;
}

/* The newest sign of life that the leader knew of when this was sent. */
static hf__time known(const struct zk *z, hf__time sent_at)
{
    unsigned at = z->touched_at;

    for (unsigned i = 1; i < TOUCHES; i++, at = (at + TOUCHES - 1) % TOUCHES)
        if (z->touched[at] <= sent_at - half_tick(z))
            break;
    return z->touched[at];
}

void hf__zk_session_heard(struct zk *z, hf__time sent_at, bool by_leader)
{
    z->nudges = 0;
    if (by_leader && sent_at > z->proved) {
        z->proved = sent_at;
        z->good_until = known(z, sent_at) + part(z, 1);
    }
    if (sent_at < z->touched[z->touched_at] + half_tick(z) / (TOUCHES / 2))
        return;
    z->touched_at = (z->touched_at + 1) % TOUCHES;
    z->touched[z->touched_at] = sent_at;
}

uint32_t hf__zk_session_ms(const struct zk *z, hf__time since)
{
    hf__time ms = (z->good_until - since) / HF__MS;

    return ms > 1 ? (uint32_t)ms : 1;
}

bool hf__zk_proved(const struct zk *z)
{
    hf__time now = z->core->now();

    return now - z->proved < part(z, FRESH_PART) &&
           z->good_until - now > part(z, FRESH_PART);
}

/* We were silent for nearly as long as the timeout: a word of ours is to reach
 * the leader before we rely on it. */
hf__time hf__zk_session_doubt(const struct zk *z)
{
    if (z->good_until - z->core->now() > part(z, DOUBT_PART))
        return 0;
    return z->core->now() + half_tick(z) + HF__MS;
}

/* The leader has opened the session, or heard of it, after we began to
 * connect. */
void hf__zk_life_begin(struct zk *z)
{
    z->timeout_ms = (uint32_t)zoo_recv_timeout(z->zh);
    for (unsigned i = 0; i < TOUCHES; i++)
        z->touched[i] = z->connect_at;
    z->proved = z->connect_at;
    z->good_until = z->connect_at + part(z, 1);
}

/* What could not be sent is not tried again all the time. */
static hf__time not_starved(const struct zk *z, hf__time at)
{
    return at > z->starved_until ? at : z->starved_until;
}

/* While somebody waits: what is granted by a word of the server then needs no
 * question more. */
static hf__time beat_at(const struct zk *z)
{
    return z->up && z->waiting && !z->beating
               ? not_starved(z, z->proved + part(z, BEAT_PART))
               : HF__NEVER;
}

/* The library would ping, but does not tell when. And a member of 3.8 may
 * fall asleep over a commit that it has received, if nobody asks it anything
 * else: one question more wakes it. */
static hf__time touch_at(const struct zk *z)
{
    hf__time at = z->sent + part(z, TOUCH_PART);
    hf__time nudge_at = z->sent + (NUDGE << z->nudges);

    if (!z->up)
        return HF__NEVER;
    if (z->calls_len && nudge_at < at)
        at = nudge_at;
    return not_starved(z, at);
}

static int touch(struct zk *z)
{
    if (z->calls_len && z->nudges < NUDGES_MAX)
        z->nudges++;
    return hf__zk_exists(z, z->nowhere, NULL, NULL);
}

static void on_beat(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;

    (void)owner;
    (void)rc;
    z->beating = false;
}

/* Sends a write that changes nothing: if it is answered, zk.proved moves. The
 * leader is asked whether something is there that never is. A transaction,
 * because no server answers one by itself, which it may do to what is denied
 * (enableEagerACLCheck). */
static int beat(struct zk *z)
{
    zoo_op_t op;
    int rc;

    if (z->beating)
        return 0;
    zoo_check_op_init(&op, z->nowhere, -1);
    rc = hf__zk_multi(z, 1, &op, on_beat, NULL);
    z->beating = !rc;
    return rc;
}

void hf__zk_prove(struct zk *z, const struct hf__req *req)
{
    if (req->fixed || !hf__zk_proved(z))
        beat(z);
}

void hf__zk_life_move(struct zk *z, hf__time now)
{
    bool sent = now < beat_at(z) || beat(z) == 0;

    if (now >= touch_at(z) && touch(z) != 0)
        sent = false;
    if (!sent)
        z->starved_until = now + STARVED;
}

/* Whoever drives may sleep for long while others send something, and has to be
 * awake when the answer does not come. If that happens often, it is awake often
 * enough without being told. */
hf__time hf__zk_life_timeout(const struct zk *z)
{
    hf__time at = beat_at(z) < touch_at(z) ? beat_at(z) : touch_at(z);
    hf__time now = z->core->now();
    bool waiting = z->waiting || z->waiting_latch;

    if (z->up && waiting && now - z->used < IN_USE && at > now + NUDGE)
        at = now + NUDGE;
    return at;
}

void hf__zk_life_sent(struct zk *z)
{
    z->core->due(z->client, z->sent + NUDGE);
}
