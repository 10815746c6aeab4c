/*
 * Sessions as in ZooKeeper: everything that a process has at the server lives
 * as long as its session. Each request keeps the session alive; a session that
 * has no request for the length of the TTL ends. After a request on a
 * new connection of the session, the server refuses all requests that arrive on
 * older connections.
 */
#include "sim.h"

static void touch_entry(struct entry *e, uint32_t serial, int64_t now,
                        int64_t expiry)
{
    if (e->serial == serial && e->expiry > now)
        e->expiry = expiry;
}

static void touch(struct world *w, struct session *s)
{
    int64_t now = server_now(w);

    s->expiry = now + w->cfg.ttl_ms * MS;
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        struct slot *slot = &w->slot[l];

        for (uint32_t i = 0; i < slot->holds; i++)
            touch_entry(&slot->hold[i], s->serial, now, s->expiry);
        for (uint32_t i = 0; i < slot->queue_len; i++)
            touch_entry(&slot->queue[i], s->serial, now, s->expiry);
    }
}

static bool refuse(struct message *m, int result)
{
    m->result = result;
    for (uint32_t i = 0; i < m->items; i++)
        m->item[i].result = HF_EUNKNOWN;
    return false;
}

bool session_admits(struct world *w, struct message *m)
{
    struct session *s = &w->session[m->proc];
    bool begins = m->serial > s->serial ||
                  (m->serial == s->serial && m->session > s->number);

    if (begins)
        *s = (struct session){m->serial, m->session, m->epoch, HF__NEVER};
    if (m->serial != s->serial || m->session != s->number ||
        server_now(w) >= s->expiry)
        return refuse(m, SESSION_OVER);
    if (m->epoch < s->epoch)
        return refuse(m, HF_EUNKNOWN);
    s->epoch = m->epoch;
    touch(w, s);
    return true;
}
