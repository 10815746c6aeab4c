#include "keepalive.h"

#include "call.h"
#include "session_proof.h"
#include "zookeeper.h"

/* The time between proving writes while locks wait is the timeout divided by
 * this. */
#define BEAT_PART 6
/* The longest time without a request is the timeout divided by this. */
#define TOUCH_PART 4
/* A nudge is a request that is sent because an answer is late. Each nudge, up
 * to this number, doubles the time to the next one. */
#define NUDGES_MAX 5
/* After a thread has sent a request, more requests are expected for this
 * long. */
#define IN_USE (1000 * HF__MS)
/* The pause after a failure to send. */
#define STARVED (10 * HF__MS)

/* Returns `at`, or starved_until if that is later, because the client pauses
 * after a failure to send. */
static hf__time keepalive_not_starved(const struct zk *z, hf__time at)
{
    return at > z->starved_until ? at : z->starved_until;
}

/* Returns when the next proving write is due. While a lock waits, these writes
 * are sent regularly, so that a grant after a watch event needs no further
 * request. */
static hf__time keepalive_beat_at(const struct zk *z)
{
    return z->up && z->waiting && !z->beating
               ? keepalive_not_starved(z, z->proved +
                                              hf__zk_proof_part(z, BEAT_PART))
               : HF__NEVER;
}

/* Returns when the next read that keeps the session alive is due. The library
 * also sends pings, but does not tell when, so they prove nothing. While calls
 * are unanswered, the read is due earlier, because a server of version 3.8 may
 * delay a commit until it receives any request. */
static hf__time keepalive_touch_at(const struct zk *z)
{
    hf__time at = z->sent + hf__zk_proof_part(z, TOUCH_PART);
    hf__time nudge_at = z->sent + (ZK_NUDGE << z->nudges);

    if (!z->up)
        return HF__NEVER;
    if (z->calls_len && nudge_at < at)
        at = nudge_at;
    return keepalive_not_starved(z, at);
}

static int keepalive_touch(struct zk *z)
{
    if (z->calls_len && z->nudges < NUDGES_MAX)
        z->nudges++;
    return hf__zk_exists(z, z->nowhere, NULL, NULL, NULL);
}

static void keepalive_on_beat(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;

    (void)owner;
    (void)rc;
    z->beating = false;
}

/* Sends a write that changes nothing: a check of a node that never exists. The
 * answer advances zk.proved. The check is sent as a transaction, because with
 * enableEagerACLCheck a follower may itself answer a request that it denies,
 * but it never answers a transaction itself. */
static int keepalive_beat(struct zk *z)
{
    zoo_op_t op;
    int rc;

    if (z->beating)
        return 0;
    zoo_check_op_init(&op, z->nowhere, -1);
    rc = hf__zk_multi(z, 1, &op, keepalive_on_beat, NULL);
    z->beating = !rc;
    return rc;
}

void hf__zk_keepalive_prove(struct zk *z, const struct hf__req *req)
{
    if (req->fixed || !hf__zk_proof_is_good(z))
        keepalive_beat(z);
}

void hf__zk_keepalive_move(struct zk *z, hf__time now)
{
    bool sent = now < keepalive_beat_at(z) || keepalive_beat(z) == 0;

    if (now >= keepalive_touch_at(z) && keepalive_touch(z) != 0)
        sent = false;
    if (!sent)
        z->starved_until = now + STARVED;
}

/* Returns when the driver must wake up. Threads may send requests while the
 * driver sleeps, but the driver must be awake to notice that an answer is late.
 * Therefore it wakes up at least every ZK_NUDGE while locks wait and threads
 * send often. */
hf__time hf__zk_keepalive_timeout(const struct zk *z)
{
    hf__time at = keepalive_beat_at(z) < keepalive_touch_at(z)
                      ? keepalive_beat_at(z)
                      : keepalive_touch_at(z);
    hf__time now = z->core->now();
    bool waiting = z->waiting || z->waiting_latch;

    if (z->up && waiting && now - z->used < IN_USE && at > now + ZK_NUDGE)
        at = now + ZK_NUDGE;
    return at;
}
