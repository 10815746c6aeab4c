/*
 * The server: what each lock is to it, and the contract of backend.h that the
 * core relies on.
 *
 * - Everything is keyed by (process, hold id) and may be asked twice.
 * - An attempt that finds itself granted already renews that grant: the answer
 *   counts from when the *second* question was sent.
 * - A lease runs by the server's own clock. A place in the queue too; it is
 *   kept by asking again.
 * - A release rings the next one's bell (fair), or everybody's (unfair). A
 *   lease that ends rings nobody's: waiters are told when to look.
 */
#include "sim.h"

#include <string.h>

int64_t server_now(const struct world *w)
{
    return clock_read(&w->server_clock, w->now);
}

static bool is_of(const struct entry *e, const struct message *m)
{
    return e->serial == m->serial && e->hold_id == m->hold_id;
}

static void unqueue(struct slot *s, uint32_t i)
{
    s->queue_len--;
    memmove(&s->queue[i], &s->queue[i + 1],
            (s->queue_len - i) * sizeof(s->queue[0]));
}

static uint32_t find(const struct slot *s, const struct message *m)
{
    uint32_t i = 0;

    while (i < s->queue_len && !is_of(&s->queue[i], m))
        i++;
    return i;
}

/* Above all that were given out, restarts included, without memory of them:
 * the server's time is, if tokens are not given faster than it runs. */
static uint64_t next_token(struct world *w, uint16_t lock, uint64_t hold_id)
{
    struct slot *s = &w->slot[lock];
    uint64_t by_time = (uint64_t)server_now(w) / 1000;

    if (w->broken & BREAK_TOKEN_HOLD)
        return hold_id;
    s->last_token++;
    if (!(w->broken & BREAK_TOKEN_RESTARTS) && s->last_token < by_time)
        s->last_token = by_time;
    return s->last_token;
}

static void ring(struct world *w, const struct entry *e, uint16_t lock)
{
    struct process *p = &w->proc[e->proc];

    if (w->broken & BREAK_NO_BELL)
        return;
    if (!p->alive || p->serial != e->serial)
        return;
    if (rng_chance(&w->rng, w->cfg.deaf)) {
        w->tally.bells++;
        return;
    }
    at_process(p, w->now + net_delay(w), EV_BELL, lock, 0);
}

/* The lock is free: who is next? */
static void freed(struct world *w, uint16_t lock)
{
    struct slot *s = &w->slot[lock];

    s->holder.serial = 0;
    if (!s->queue_len)
        return;
    if (!w->cfg.fair) {
        for (uint32_t i = 0; i < s->queue_len; i++)
            ring(w, &s->queue[i], lock);
        return;
    }
    ring(w, &s->queue[0], lock);
    if (!w->cfg.hands_over)
        return;
    /* It is granted before it knows; until it asks, its place in the queue is
     * all that keeps it. */
    s->holder = s->queue[0];
    s->holder.placed = true;
    s->holder.token = next_token(w, lock, s->holder.hold_id);
    unqueue(s, 0);
}

static void purge(struct world *w, uint16_t lock)
{
    struct slot *s = &w->slot[lock];
    int64_t now = server_now(w);

    for (uint32_t i = 0; i < s->queue_len;)
        if (s->queue[i].expiry <= now)
            unqueue(s, i);
        else
            i++;
    if (s->holder.serial && s->holder.expiry <= now)
        freed(w, lock);
}

static int64_t lease_end(const struct world *w, uint32_t lease_ms, bool fixed)
{
    return w->cfg.endless && !fixed ? HF__NEVER : server_now(w) + lease_ms * MS;
}

/* Places are kept for a look and a half, or for the TTL. */
static int64_t place_end(const struct world *w)
{
    int64_t keep = w->cfg.ttl_ms * MS > LOOK ? w->cfg.ttl_ms * MS : LOOK;

    return w->cfg.endless ? HF__NEVER : server_now(w) + keep + SEC;
}

static int grant(struct world *w, struct message *m, bool late)
{
    struct slot *s = &w->slot[m->lock];
    uint32_t i = find(s, m);

    if (i < s->queue_len)
        unqueue(s, i);
    s->holder = (struct entry){.serial = m->serial,
                               .proc = m->proc,
                               .ghost = late,
                               .hold_id = m->hold_id,
                               .lease_ms = m->lease_ms,
                               .fixed = m->fixed};
    s->holder.expiry = lease_end(w, m->lease_ms, m->fixed);
    s->holder.token = m->token = next_token(w, m->lock, m->hold_id);
    return HF__GRANTED;
}

static int again(struct world *w, struct message *m, bool late)
{
    struct entry *e = &w->slot[m->lock].holder;
    int64_t end = lease_end(w, m->lease_ms, m->fixed);

    if (!late)
        e->ghost = false;
    /* A question that comes late must not shorten what was renewed since; a
     * place in the queue becomes a lease. */
    if (end > e->expiry || e->placed)
        e->expiry = end;
    e->placed = false;
    m->token = e->token;
    return HF__GRANTED;
}

static int attempt(struct world *w, struct message *m, bool late)
{
    struct slot *s = &w->slot[m->lock];
    uint32_t i = find(s, m);
    int64_t first_end;

    if (s->holder.serial && is_of(&s->holder, m) &&
        !(w->broken & BREAK_ATTEMPT_TWICE))
        return again(w, m, late);
    if (!s->holder.serial && (!w->cfg.fair || !s->queue_len || i == 0))
        return grant(w, m, late);
    if (!m->may_queue)
        return HF__BUSY; /* and a place it had before, it keeps */
    if (i == s->queue_len) {
        if (i == QUEUE_MAX)
            return HF_EBACKEND;
        s->queue[s->queue_len++] = (struct entry){.serial = m->serial,
                                                  .proc = m->proc,
                                                  .ghost = late,
                                                  .hold_id = m->hold_id};
    }
    s->queue[i].ghost &= late;
    s->queue[i].lease_ms = m->lease_ms;
    s->queue[i].fixed = m->fixed;
    s->queue[i].expiry = place_end(w);
    first_end = s->holder.serial ? s->holder.expiry : s->queue[0].expiry;
    m->look_in = first_end == HF__NEVER ? LOOK : first_end - server_now(w) + MS;
    if (m->look_in > LOOK)
        m->look_in = LOOK;
    return HF__QUEUED;
}

static int release(struct world *w, struct message *m)
{
    struct slot *s = &w->slot[m->lock];

    if (!s->holder.serial ||
        (!is_of(&s->holder, m) && !(w->broken & BREAK_RELEASE_ANY)))
        return HF_ENOTOWNER;
    freed(w, m->lock);
    return HF__DONE;
}

static int abandon(struct world *w, struct message *m)
{
    struct slot *s = &w->slot[m->lock];
    uint32_t i = find(s, m);

    if (i < s->queue_len) {
        unqueue(s, i);
        if (!i && !s->holder.serial)
            freed(w, m->lock);
    }
    if (s->holder.serial && is_of(&s->holder, m) &&
        !(w->broken & BREAK_ABANDON_HALF))
        freed(w, m->lock);
    return HF__DONE;
}

static int renew(struct world *w, const struct message *m, uint16_t lock)
{
    const struct renewal *r = &m->item[lock];
    struct message of = {.serial = m->serial, .hold_id = r->hold_id};
    struct entry *e = &w->slot[lock].holder;
    int64_t end;

    if (!e->serial && (w->broken & BREAK_RENEW_REVIVES)) {
        of = *m;
        of.hold_id = r->hold_id;
        of.lock = lock;
        of.lease_ms = r->lease_ms;
        grant(w, &of, false);
    }
    if (!e->serial || !is_of(e, &of))
        return HF_ENOTOWNER;
    end = lease_end(w, r->lease_ms, e->fixed);
    if (end > e->expiry || w->cfg.renew_sets)
        e->expiry = end;
    return HF__DONE;
}

/* It is loading, or has no memory left: it answers, and does nothing. */
static void refuse(struct world *w, struct message *m)
{
    m->result = HF_EBACKEND;
    for (uint16_t l = 0; l < w->cfg.names; l++)
        m->item[l].result = HF_EBACKEND;
}

void server_execute(struct world *w, struct message *m, bool late)
{
    if (w->now < w->server_ill_until || rng_chance(&w->rng, w->cfg.refuse)) {
        refuse(w, m);
        return;
    }
    purge(w, m->lock);
    switch (m->op) {
    case HF__ATTEMPT:
        m->result = attempt(w, m, late);
        if (late && m->result != HF__BUSY)
            note(w,
                 (struct history_event){.kind = HISTORY_FAULT,
                                        .until = w->now + 2 * w->rules.ttl_ns});
        break;
    case HF__RELEASE:
        m->result = release(w, m);
        break;
    case HF__ABANDON:
        m->result = abandon(w, m);
        break;
    default:
        for (uint16_t l = 0; l < w->cfg.names; l++) {
            if (!m->item[l].hold_id)
                continue;
            purge(w, l);
            m->item[l].result = renew(w, m, l);
        }
        m->result = HF__DONE;
    }
    trace(w, "server: %s op %d of %u:%llu -> %d%s", late ? "late" : "", m->op,
          m->serial, (unsigned long long)m->hold_id, m->result,
          m->copy ? " (copy)" : "");
}

void server_restart(struct world *w)
{
    for (uint16_t l = 0; l < w->cfg.names; l++)
        w->slot[l] = (struct slot){0};
}

/* The kernel, or the session's end, tells that a process is gone. */
void server_reap(struct world *w, uint32_t serial)
{
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        struct slot *s = &w->slot[l];
        bool first = s->queue_len && s->queue[0].serial == serial;

        for (uint32_t i = 0; i < s->queue_len;)
            if (s->queue[i].serial == serial)
                unqueue(s, i);
            else
                i++;
        if (s->holder.serial == serial || (first && !s->holder.serial))
            freed(w, l);
    }
}

/* Nothing of a living process is there, except what came from requests that
 * it knew nothing of any more; those end by themselves. */
static bool is_left(const struct world *w, const struct entry *e)
{
    const struct process *p = &w->proc[e->proc];

    return e->serial && (!e->ghost || w->cfg.endless) && p->alive &&
           p->serial == e->serial && e->expiry > server_now(w);
}

void server_left(struct world *w)
{
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        const struct slot *s = &w->slot[l];
        uint32_t n = is_left(w, &s->holder);

        for (uint32_t i = 0; i < s->queue_len; i++)
            n += is_left(w, &s->queue[i]);
        if (n)
            note(w, (struct history_event){
                        .kind = HISTORY_LEFT, .lock = l, .value = n});
    }
}
