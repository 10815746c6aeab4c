/*
 * What is sent so that the session lives, and so that there is a proof that it
 * does (session_proof.c).
 */
#include "keepalive.h"

#include "call.h"
#include "session_proof.h"
#include "zookeeper.h"

#define BEAT_PART 6  /* of the timeout: proofs, while somebody waits */
#define TOUCH_PART 4 /* a sign of life, at least */
#define NUDGES_MAX 5 /* each after twice the time */
#define IN_USE (1000 * HF__MS) /* since a thread has sent something */
#define STARVED (10 * HF__MS)

/* What could not be sent is not tried again all the time. */
static hf__time keepalive_not_starved(const struct zk *z, hf__time at)
{
    return at > z->starved_until ? at : z->starved_until;
}

/* While somebody waits: what is granted by a word of the server then needs no
 * request more. */
static hf__time keepalive_beat_at(const struct zk *z)
{
    return z->up && z->waiting && !z->beating
               ? keepalive_not_starved(z, z->proved +
                                              hf__zk_proof_part(z, BEAT_PART))
               : HF__NEVER;
}

/* The library would ping, but does not tell when. And a member of 3.8 may
 * fall asleep over a commit that it has received, if nobody sends it anything
 * else: one request more wakes it. */
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

/* Sends a write that changes nothing: if it is answered, zk.proved moves. The
 * leader has to say whether something is there that never is. A transaction,
 * because no server answers one by itself, which it may do to what is denied
 * (enableEagerACLCheck). */
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

/* Whoever drives may sleep for long while others send something, and has to be
 * awake when the answer does not come. If that happens often, it is awake often
 * enough without being told. */
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
