/*
 * Checks that both connections (for commands and for messages) lead to the same
 * server. Each of them is established independently. After a failover the
 * connection for messages may still lead to the old master. The old master is
 * then a replica, and passes on what is published at the new master.
 *
 * Messages are therefore trusted only after a proof, which is needed for each
 * pair of connections. The command connection publishes a number on our
 * channel. The number must return as a message, and the server of the commands
 * must count a listener of our channel. If we listened at a replica, the
 * replica would pass the number on, but its master would not count us. Until
 * the proof has succeeded, waiters poll, and "you hold it" only means "try"
 * (subscribe.c).
 *
 * After the proof, "you hold it" is true whenever it arrives, because the
 * scripts publish it only if their own server counts a listener
 * (lua/README.md).
 */
#include "same_server.h"

#include "channels.h"
#include "flights.h"
#include "notify.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "scripts.h"

#include <errno.h>
#include <stdlib.h>

/* After the first failed proof, the client replaces the connection for messages
 * at once. After each further failure, it waits first: this pause, then twice
 * as long each time, up to 8 minutes. The pause grows because a proxy may let
 * another node count the listeners, and then no proof can ever succeed. During
 * the pause the old connection stays open: its messages are not trusted, but
 * they still make a waiter attempt again. */
#define APART_MS 30000
#define APART_MOST 5
/* Pause before a proof that the server refused temporarily is repeated. */
#define AGAIN_MS 1000
/* How long to wait until the number returns and the channel is counted. The
 * time is long, because a machine may stand still for seconds. A long time does
 * no harm, because waiters poll until the proof has succeeded. */
#define PROOF_MS 10000

void hf__rd_pair_end(struct redis *r)
{
    struct rd_pair *p = &r->chans.pair;

    p->state = RD_PROOF_NONE;
    p->put_off = false;
    if (r->chans.state == RD_SUB_LIVE)
        r->chans.state = RD_SUB_CONFIRMED;
    /* Drop the tokens of the early messages (struct rd_early). Such a token is
     * valid only together with a reply of the same server, and the next pair of
     * connections may lead to another server. */
    for (int i = 0; i < RD_EARLY; i++)
        r->chans.early[i].token = 0;
}

static void server_apart(struct redis *r, hf__time now)
{
    static const char text[] =
        "messages come from a different server than answers";
    struct rd_pair *p = &r->chans.pair;

    if (!p->apart) {
        p->apart = 1;
        hf__link_fail(&r->sub.link,
                      hf__link_why(&r->sub.link, HF_EBACKEND, "%s", text), now);
        return;
    }
    p->state = RD_PROOF_PAUSING;
    p->put_off = false;
    p->at = now + ((hf__time)APART_MS << (p->apart - 1)) * HF__MS;
    if (p->apart == 1)
        hf__rd_no_messages(r, r->sub.link.where, text);
    if (p->apart < APART_MOST)
        p->apart++;
}

/* Handles a permanent or temporary refusal of the proof. Repeated temporary
 * refusals are logged once. */
static void server_refused(struct redis *r, const char *text, hf__time now)
{
    struct rd_pair *p = &r->chans.pair;
    bool passes = hf__rd_may_pass(text);

    p->state = passes ? RD_PROOF_PAUSING : RD_PROOF_NONE;
    if (!passes || !p->put_off)
        hf__rd_no_messages(r, "publish", text);
    p->put_off = passes;
    p->at = now + AGAIN_MS * HF__MS;
}

bool hf__rd_pair_is_under_way(const struct redis *r)
{
    const struct rd_pair *p = &r->chans.pair;

    return p->state >= RD_PROOF_SENT && p->state <= RD_PROOF_COUNTED;
}

/* Notes that one half of the proof has arrived. If the other half has arrived
 * before, the proof has succeeded. */
static void server_half(struct redis *r, enum rd_proof this,
                        enum rd_proof other)
{
    struct rd_pair *p = &r->chans.pair;

    if (p->state != other) {
        p->state = this;
        return;
    }
    p->state = RD_PROOF_NONE;
    p->apart = 0;
    p->put_off = false;
    r->chans.state = RD_SUB_LIVE;
    r->chans.live_at = r->core->now();
    hf__rd_held_check(r);
    hf__rd_ring_all(r);
}

static int server_proved(struct rd_pipe *cmd, struct rd_sent *sent,
                         const struct rd_node *reply, hf__time now)
{
    struct redis *r = cmd->owner;
    struct rd_pair *p = &r->chans.pair;
    int64_t counted = 0;

    if (!hf__rd_pair_is_under_way(r) ||
        ((struct rd_flight *)sent)->hold_id != p->number)
        return 0; /* the reply to an earlier proof */
    if (reply->type == REDIS_REPLY_ERROR) {
        server_refused(r, reply->text, now);
    } else if (hf__rd_int(reply, &counted) && counted > 0) {
        server_half(r, RD_PROOF_COUNTED, RD_PROOF_HEARD);
    } else {
        server_apart(r, now);
    }
    return 0;
}

void hf__rd_pair_begin(struct redis *r)
{
    const struct rd_text *script = &hf__rd_script[RD_PROVE];
    struct rd_pair *p = &r->chans.pair;
    struct net_out *o = &r->cmd.link.stream.out;
    char text[1 + 21] = "p";
    struct rd_flight *f;

    if (r->chans.state == RD_SUB_NONE || r->cmd.link.state != NET_UP ||
        r->cmd.link.stream.broken)
        return;
    f = hf__rd_pipe_send(&r->cmd, server_proved, 1,
                         script->len + r->wake_len + 128);
    if (!f) {
        r->sub.link.stream.broken = ENOMEM;
        return;
    }
    f->hold_id = ++p->number;
    p->state = RD_PROOF_SENT;
    p->at = f->sent.net.at + PROOF_MS * HF__MS;
    hf__rd_put_count(o, '*', 5);
    /* Send EVAL, because NOSCRIPT is not handled here. */
    hf__rd_put_text(o, "EVAL");
    hf__rd_put(o, script->text, script->len);
    hf__rd_put_num(o, 0);
    hf__rd_put(o, r->wake, r->wake_len);
    hf__rd_put(o, text, 1 + hf__rd_decimal(text + 1, p->number));
}

void hf__rd_pair_heard(struct redis *r, const char *number)
{
    struct rd_pair *p = &r->chans.pair;

    if (!hf__rd_pair_is_under_way(r) || strtoull(number, NULL, 10) != p->number)
        return; /* the number of an earlier proof */
    server_half(r, RD_PROOF_HEARD, RD_PROOF_COUNTED);
}

hf__time hf__rd_pair_timeout(const struct redis *r)
{
    const struct rd_pair *p = &r->chans.pair;

    return p->state == RD_PROOF_NONE ? HF__NEVER : p->at;
}

bool hf__rd_pair_move(struct redis *r, hf__time now)
{
    const struct rd_pair *p = &r->chans.pair;

    if (now < hf__rd_pair_timeout(r))
        return false;
    if (hf__rd_pair_is_under_way(r)) {
        server_apart(r, now);
        return false;
    }
    if (!p->put_off)
        return true;
    hf__rd_pair_begin(r);
    hf__net_flush(&r->cmd.link.stream);
    return false;
}
