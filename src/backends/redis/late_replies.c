/*
 * Attempts whose connection broke. The server may still execute such an attempt
 * later than a request on the new connection, such as the release or abandon of
 * the same hold id. The TAKE scripts refuse an attempt that is too old
 * (valid_until_us), so from some time on it can no longer be executed. If the
 * hold id is released or abandoned before that time, the client sends a further
 * abandon after that time. No request waits for the reply to this abandon.
 *
 * The server's clock decides when the attempt is too old, and the client only
 * estimates that clock. The server writes its time into a reply at some moment
 * between the sending of the command and the arrival of the reply; the client
 * treats it as the time of the sending. The estimate may therefore be ahead by
 * as much as that interval, and the server may refuse the attempt that much
 * later than the client expects. If the interval is longer than MARGIN, the
 * abandon is sent twice: at the expected time, and one such interval later.
 */
#include "late_replies.h"

#include "flights.h"
#include "kinds.h"
#include "redis.h"

#include <string.h>

#define MARGIN (100 * HF__MS) /* tolerance for the server's clock */

struct rd_late {
    struct rd_late *next;
    uint64_t hold_id;
    hf__time at;    /* when the server begins to refuse the attempt */
    hf__time doubt; /* how much later than `at` that may be */
    bool over;      /* the hold id was released: abandon it again at `at` */
    bool fair;
    uint8_t kind;
    uint16_t name_len;
    char name[];
};

void hf__rd_late_add(struct redis *r, const struct rd_flight *f, hf__time now)
{
    const struct hf__remote *m = f->remote;
    hf__time at = f->sent.net.at + r->op_timeout_ms * HF__MS + MARGIN;
    struct rd_late *l;

    if (!m || at + f->ahead <= now || m->kind == HF_LATCH)
        return;
    l = r->core->alloc(r->client, sizeof(*l) + m->name_len);
    if (!l)
        /* Without memory no further abandon is sent: if the attempt is executed
         * late, the lock is free only when the TTL has passed. */
        return;
    l->hold_id = f->hold_id;
    l->at = at;
    l->doubt = f->ahead > MARGIN ? f->ahead : 0;
    l->over = !f->req;
    l->fair = m->fair;
    l->kind = m->kind;
    l->name_len = m->name_len;
    memcpy(l->name, m->name, m->name_len);
    l->next = r->late;
    r->late = l;
    r->core->due(r->client, at); /* at that time a thread must drive the
                                    client */
}

void hf__rd_late_over(struct redis *r, uint64_t hold_id)
{
    for (struct rd_late *l = r->late; l; l = l->next)
        l->over |= l->hold_id == hold_id;
}

static void replies_let_go(struct redis *r, const struct rd_late *l)
{
    struct hf__remote remote = {.name = l->name,
                                .name_len = l->name_len,
                                .kind = l->kind,
                                .fair = l->fair};
    struct hf__req req = {
        .remote = &remote, .hold_id = l->hold_id, .op = HF__ABANDON};

    /* Send EVAL: the request is forgotten below, so after NOSCRIPT there would
     * be nothing to send again. */
    r->by_text[hf__rd_script_of(r, &remote, HF__ABANDON)] = true;
    if (hf__rd_verb_encode(r, &req) == 0)
        hf__rd_forget(r, &req);
}

void hf__rd_late_move(struct redis *r, hf__time now)
{
    struct rd_late **at = &r->late, *l;

    while ((l = *at)) {
        if (now < l->at || (l->over && r->cmd.link.state != NET_UP)) {
            at = &l->next;
            continue;
        }
        if (l->over)
            replies_let_go(r, l);
        if (l->doubt) {
            l->at += l->doubt;
            l->doubt = 0;
            r->core->due(r->client, l->at);
            continue; /* the second abandon may be due already */
        }
        *at = l->next;
        r->core->free(r->client, l);
    }
}

hf__time hf__rd_late_timeout(const struct redis *r)
{
    hf__time at = HF__NEVER;

    for (const struct rd_late *l = r->late; l; l = l->next)
        if (!l->over || r->cmd.link.state == NET_UP)
            at = hf__min_time(at, l->at);
    return at;
}

void hf__rd_late_fini(struct redis *r)
{
    while (r->late) {
        struct rd_late *l = r->late;

        r->late = l->next;
        r->core->free(r->client, l);
    }
}
