/*
 * The server: the state of each lock, and the contract of backend.h that the
 * core relies on.
 *
 * - Everything is keyed by (process, hold id), and requests may be repeated.
 * - An attempt that finds its hold already granted renews the hold: the lease
 *   counts from when the server executes the *second* attempt.
 * - Leases and places in the queue expire by the server's own clock. A repeated
 *   attempt keeps its place.
 * - A release wakes the waiters that may go now (fair) or all of them (unfair).
 *   A lease that expires wakes waiters only at the next request for the lock.
 *   Therefore a waiter polls at the time that the server's answer gave.
 *
 * Every lock is modelled by shares: a read hold takes one share, a write hold
 * all of them, a semaphore hold its permits. An attempt is granted if the holds
 * leave enough shares; in a fair lock, the waiters ahead count too. A latch is
 * open to all waiters when its count is 0, and always to waiters of an earlier
 * round; no client holds it.
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

static struct entry *find_hold(struct slot *s, const struct message *m)
{
    for (uint32_t i = 0; i < s->holds; i++)
        if (is_of(&s->hold[i], m))
            return &s->hold[i];
    return NULL;
}

/* Returns the token of a grant. A token of an exclusive hold must exceed all
 * earlier tokens. A restart forgets the earlier tokens; therefore a new token
 * is at least the server's time in microseconds. That time exceeds all tokens
 * given so far, unless more than one token is given per microsecond. */
static uint64_t next_token(struct world *w, uint16_t lock, uint64_t hold_id,
                           uint32_t share)
{
    struct slot *s = &w->slot[lock];
    uint64_t by_time = (uint64_t)server_now(w) / 1000;

    if (w->broken & BREAK_TOKEN_HOLD)
        return hold_id;
    /* Shared holds do not raise the token. */
    if (share != w->cfg.whole[lock] && s->last_token)
        return s->last_token - !!(w->broken & BREAK_TOKEN_SHARED);
    s->last_token++;
    if (!(w->broken & BREAK_TOKEN_RESTARTS) && s->last_token < by_time)
        s->last_token = by_time;
    return s->last_token;
}

static void ring(struct world *w, const struct entry *e)
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
    at_process(p, w->now + net_delay(w), EV_BELL, e->line, 0);
}

/* Returns whether a request for that share may be granted with `ahead` waiters
 * before it. */
static bool may_go(const struct world *w, uint16_t lock, uint32_t ahead,
                   uint32_t share)
{
    const struct slot *s = &w->slot[lock];
    uint64_t sum = share;

    if (w->cfg.kind[lock] == HF_LATCH)
        return !s->count;
    if ((w->broken & BREAK_COUNT_HOLDS) && w->cfg.kind[lock] == HF_SEMAPHORE)
        return s->holds < w->cfg.whole[lock];
    if ((w->broken & BREAK_READ_FREELY) && share == 1 &&
        w->cfg.kind[lock] == HF_RWLOCK)
        return true;
    for (uint32_t i = 0; i < s->holds; i++)
        sum += s->hold[i].share;
    for (uint32_t i = 0; w->cfg.fair && i < ahead; i++)
        sum += s->queue[i].share;
    return sum <= w->cfg.whole[lock];
}

static struct entry *add_hold(struct world *w, uint16_t lock,
                              const struct entry *e)
{
    struct slot *s = &w->slot[lock];

    if (s->holds == HOLDS_MAX) {
        world_fail(w, "SIM", "too many holds");
        s->holds--;
    }
    s->hold[s->holds] = *e;
    return &s->hold[s->holds++];
}

/* Wakes the waiters that are next, or all waiters if the lock is unfair or a
 * latch. Called when a hold or a place in the queue has ended, a hold was
 * downgraded, or a latch has reached 0. */
static void freed(struct world *w, uint16_t lock)
{
    struct slot *s = &w->slot[lock];
    struct entry *e;

    if (!w->cfg.fair || w->cfg.kind[lock] == HF_LATCH) {
        for (uint32_t i = 0; i < s->queue_len; i++)
            ring(w, &s->queue[i]);
        return;
    }
    for (uint32_t i = 0; i < s->queue_len;) {
        if (!may_go(w, lock, i, s->queue[i].share))
            return;
        ring(w, &s->queue[i]);
        if (!w->cfg.hands_over) {
            i++;
            continue;
        }
        /* The waiter is granted the lock before it knows. Until it sends its
         * next attempt, the hold lasts only as long as its place in the queue
         * would have. */
        e = add_hold(w, lock, &s->queue[i]);
        e->placed = true;
        e->token = next_token(w, lock, e->hold_id, e->share);
        unqueue(s, i);
    }
}

static void remove_hold(struct world *w, uint16_t lock, struct entry *e)
{
    struct slot *s = &w->slot[lock];

    *e = s->hold[--s->holds];
    freed(w, lock);
}

static void purge(struct world *w, uint16_t lock)
{
    struct slot *s = &w->slot[lock];
    int64_t now = server_now(w);
    bool any = false;

    for (uint32_t i = 0; i < s->queue_len;)
        if (s->queue[i].expiry <= now) {
            unqueue(s, i);
            any = true;
        } else {
            i++;
        }
    for (uint32_t i = 0; i < s->holds;)
        if (s->hold[i].expiry <= now) {
            s->hold[i] = s->hold[--s->holds];
            any = true;
        } else {
            i++;
        }
    if (any)
        freed(w, lock);
}

static int64_t lease_end(const struct world *w, uint32_t lease_ms, bool fixed)
{
    if (w->cfg.session)
        return server_now(w) + w->cfg.ttl_ms * MS; /* the end of the session */
    return w->cfg.endless && !fixed ? HF__NEVER : server_now(w) + lease_ms * MS;
}

/* Returns when a place in the queue expires. It expires with the session if
 * there are sessions, and never if leases are endless. Otherwise it expires a
 * second after the TTL, or a second after the next poll if that is later. */
static int64_t place_end(const struct world *w)
{
    int64_t keep = w->cfg.ttl_ms * MS > LOOK ? w->cfg.ttl_ms * MS : LOOK;

    if (w->cfg.session)
        return lease_end(w, 0, false);
    return w->cfg.endless ? HF__NEVER : server_now(w) + keep + SEC;
}

static struct entry entry_of(const struct message *m, bool late)
{
    return (struct entry){.serial = m->serial,
                          .proc = m->proc,
                          .line = m->line,
                          .share = m->share,
                          .ghost = late,
                          .hold_id = m->hold_id,
                          .lease_ms = m->lease_ms,
                          .fixed = m->fixed};
}

static int grant(struct world *w, struct message *m, bool late)
{
    struct slot *s = &w->slot[m->lock];
    struct entry e = entry_of(m, late);
    uint32_t i = find(s, m);

    if (i < s->queue_len)
        unqueue(s, i);
    m->token = next_token(w, m->lock, m->hold_id, m->share);
    if (w->cfg.kind[m->lock] == HF_LATCH)
        return HF__GRANTED; /* a latch is not held */
    e.expiry = lease_end(w, m->lease_ms, m->fixed);
    e.token = m->token;
    add_hold(w, m->lock, &e);
    return HF__GRANTED;
}

static int again(struct world *w, struct entry *e, struct message *m, bool late)
{
    int64_t end = lease_end(w, m->lease_ms, m->fixed);

    if (!late)
        e->ghost = false;
    /* A late attempt must not shorten a lease that was renewed since. A placed
     * hold (see freed()) gets its full lease now. */
    if (end > e->expiry || e->placed)
        e->expiry = end;
    e->placed = false;
    m->token = e->token;
    return HF__GRANTED;
}

static int64_t first_end(const struct slot *s)
{
    int64_t end = s->holds ? HF__NEVER : s->queue[0].expiry;

    for (uint32_t i = 0; i < s->holds; i++)
        if (s->hold[i].expiry < end)
            end = s->hold[i].expiry;
    return end;
}

/* Returns whether the latch that the message awaits has been 0 and was set
 * again since. */
static bool has_passed(const struct world *w, const struct message *m)
{
    return w->cfg.kind[m->lock] == HF_LATCH && m->round &&
           m->round != w->latch[m->lock].sets;
}

/* Returns whether the answer says that the count is 0. A server with sessions
 * cannot say that, because it compares only the round. */
static bool says_zero(const struct world *w, const struct message *m)
{
    return w->cfg.kind[m->lock] == HF_LATCH && !w->slot[m->lock].count &&
           !w->cfg.session;
}

static int attempt(struct world *w, struct message *m, bool late)
{
    struct slot *s = &w->slot[m->lock];
    struct entry *held = find_hold(s, m);
    uint32_t i = find(s, m);
    int64_t end;

    if (held && !(w->broken & BREAK_ATTEMPT_TWICE))
        return again(w, held, m, late);
    m->is_zero = says_zero(w, m);
    if (may_go(w, m->lock, i, m->share) || has_passed(w, m))
        return grant(w, m, late);
    m->round = w->latch[m->lock].sets;
    if (!m->may_queue)
        return HF__BUSY; /* the request keeps any place that it had before */
    if (i == s->queue_len) {
        if (i == QUEUE_MAX)
            return HF_EBACKEND;
        s->queue[s->queue_len++] = entry_of(m, late);
    }
    s->queue[i].ghost &= late;
    s->queue[i].lease_ms = m->lease_ms;
    s->queue[i].fixed = m->fixed;
    s->queue[i].expiry = place_end(w);
    end = first_end(s);
    m->look_in = end == HF__NEVER ? LOOK : end - server_now(w) + MS;
    if (m->look_in > LOOK)
        m->look_in = LOOK;
    return HF__QUEUED;
}

static int release(struct world *w, struct message *m)
{
    struct slot *s = &w->slot[m->lock];
    struct entry *e = find_hold(s, m);

    if (!e && s->holds && (w->broken & BREAK_RELEASE_ANY))
        e = &s->hold[0];
    if (!e)
        return HF_ENOTOWNER;
    remove_hold(w, m->lock, e);
    return HF__DONE;
}

static int abandon(struct world *w, struct message *m)
{
    struct slot *s = &w->slot[m->lock];
    struct entry *e = find_hold(s, m);
    uint32_t i = find(s, m);

    if (i < s->queue_len) {
        unqueue(s, i);
        if (w->cfg.fair)
            freed(w, m->lock);
    }
    if (e && !(w->broken & BREAK_ABANDON_HALF))
        remove_hold(w, m->lock, e);
    return HF__DONE;
}

static void make_shared(struct world *w, uint16_t lock, struct entry *e)
{
    if (e->share == 1)
        return;
    e->share = 1;
    freed(w, lock);
}

static int downgrade(struct world *w, struct message *m)
{
    struct entry *e = find_hold(&w->slot[m->lock], m);

    if (!e)
        return HF_ENOTOWNER;
    make_shared(w, m->lock, e);
    return HF__DONE;
}

static int renew(struct world *w, const struct message *m,
                 const struct renewal *r)
{
    struct slot *s = &w->slot[r->lock];
    struct message of = {.serial = m->serial,
                         .proc = m->proc,
                         .hold_id = r->hold_id,
                         .lock = r->lock,
                         .line = r->line,
                         .lease_ms = r->lease_ms,
                         .share = w->cfg.whole[r->lock]};
    struct entry *e = find_hold(s, &of);
    int64_t end;

    if (!e && !s->holds && (w->broken & BREAK_RENEW_REVIVES)) {
        grant(w, &of, false);
        e = find_hold(s, &of);
    }
    if (!e)
        return HF_ENOTOWNER;
    end = lease_end(w, r->lease_ms, e->fixed);
    if (end > e->expiry || w->cfg.renew_sets)
        e->expiry = end;
    if (r->reads) /* an earlier downgrade may have been lost */
        make_shared(w, r->lock, e);
    return HF__DONE;
}

/* Returns the latest time by which the client repeats the message if it is
 * refused. Only messages that let other clients proceed have such a time; for
 * other messages returns 0. */
static int64_t said_again(const struct world *w, const struct message *m)
{
    bool reads = m->op == HF__DOWNGRADE;

    if (m->op == HF__RELEASE || m->op == HF__ABANDON)
        return w->now + 1600 * MS;
    for (uint32_t i = 0; i < m->items; i++)
        reads = reads || m->item[i].reads;
    return reads ? w->now + w->cfg.ttl_ms * MS / 20 + 10 * MS : 0;
}

/* Refuses the request without doing anything, as a server that is loading or
 * out of memory does. If the request would have let other clients proceed, they
 * wait until the client repeats it, so waits are not judged until then. */
static void refuse(struct world *w, struct message *m)
{
    int64_t until = said_again(w, m);
    int code = w->cfg.sulks ? HF_EAUTH : HF_EBACKEND;

    m->result = code;
    m->untouched = rng_chance(&w->rng, 500); /* some backends can tell */
    for (uint32_t i = 0; i < m->items; i++)
        m->item[i].result = code;
    if (until)
        note_fault(w, until);
}

static void execute(struct world *w, struct message *m, bool late)
{
    purge(w, m->lock);
    switch (m->op) {
    case HF__ATTEMPT:
        m->result = attempt(w, m, late);
        if (late && m->result != HF__BUSY)
            note_fault(w, w->now + 2 * w->rules.ttl_ns);
        break;
    case HF__RELEASE:
        m->result = release(w, m);
        break;
    case HF__ABANDON:
        m->result = abandon(w, m);
        break;
    case HF__DOWNGRADE:
        m->result = downgrade(w, m);
        break;
    default:
        for (uint32_t i = 0; i < m->items; i++) {
            purge(w, m->item[i].lock);
            m->item[i].result = renew(w, m, &m->item[i]);
        }
        m->result = HF__DONE;
    }
    trace(w, "server: %s op %d of %u:%llx -> %d%s", late ? "late" : "", m->op,
          m->serial, (unsigned long long)m->hold_id, m->result,
          m->copy ? " (copy)" : "");
}

void server_execute(struct world *w, struct message *m, bool late)
{
    if (w->cfg.session && !session_admits(w, m))
        return;
    if (w->now < w->server_ill_until || rng_chance(&w->rng, w->cfg.refuse) ||
        (sulk_refuses(w, m) && !w->sulk.partly)) {
        refuse(w, m);
        return;
    }
    execute(w, m, late);
    if (!sulk_refuses(w, m))
        return;
    /* The server fails halfway: it has executed the request, but the answer
     * says that it was refused. */
    m->result = HF_EAUTH;
    for (uint32_t i = 0; i < m->items; i++)
        m->item[i].result = HF_EAUTH;
}

static void latch_note(struct world *w, uint16_t lock, int kind)
{
    note(w, (struct history_event){.kind = (uint8_t)kind,
                                   .lock = lock,
                                   .owner = w->latch[lock].owner,
                                   .until = HF__NEVER,
                                   .cap = HF__NEVER,
                                   .token = w->latch[lock].sets});
}

static void latch_opens(struct world *w, uint16_t lock)
{
    w->slot[lock].count = 0;
    latch_note(w, lock, HISTORY_RELEASE);
    latch_note(w, lock, HISTORY_RELEASED);
    freed(w, lock);
}

/* Sets the latch or counts it down, and draws when to do so next; opens the
 * latch at the end. */
void server_latch(struct world *w, uint16_t lock)
{
    struct slot *s = &w->slot[lock];

    if (s->count > 1) {
        s->count--;
    } else if (s->count) {
        latch_opens(w, lock);
    } else if (w->quota) {
        s->count = (uint32_t)rng_between(&w->rng, 1, 3);
        w->latch[lock].sets++;
        w->latch[lock].shut_at = w->now;
        latch_note(w, lock, HISTORY_CALL);
        latch_note(w, lock, HISTORY_RETURN);
    }
    if (w->quota || s->count)
        heap_push(&w->heap,
                  (struct event){.at = w->now + rng_skewed(&w->rng, 100000,
                                                           w->cfg.hold_hi),
                                 .kind = EV_LATCH,
                                 .a = lock});
}

bool server_was_open(const struct world *w, uint16_t lock, int64_t since)
{
    return !w->slot[lock].count || w->latch[lock].shut_at >= since;
}

void server_restart(struct world *w)
{
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        if (w->slot[l].count)
            latch_opens(w, l);
        w->slot[l] = (struct slot){0};
    }
}

/* Removes all that a process has, as the kernel does when the process dies, or
 * the server when its session ends. */
void server_reap(struct world *w, uint32_t serial)
{
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        struct slot *s = &w->slot[l];

        for (uint32_t i = 0; i < s->queue_len;)
            if (s->queue[i].serial == serial)
                unqueue(s, i);
            else
                i++;
        for (uint32_t i = 0; i < s->holds;)
            if (s->hold[i].serial == serial)
                s->hold[i] = s->hold[--s->holds];
            else
                i++;
        freed(w, l);
    }
}

/* Returns whether the entry should not exist at the end. A live process has no
 * entries then, except from requests that it had already given up; those
 * entries expire by themselves. */
static bool is_left(const struct world *w, const struct entry *e)
{
    const struct process *p = &w->proc[e->proc];

    return e->serial && (!e->ghost || w->cfg.endless || w->cfg.session) &&
           p->alive && p->serial == e->serial && e->expiry > server_now(w);
}

void server_left(struct world *w)
{
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        const struct slot *s = &w->slot[l];
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->holds; i++)
            n += is_left(w, &s->hold[i]);
        for (uint32_t i = 0; i < s->queue_len; i++)
            n += is_left(w, &s->queue[i]);
        if (n)
            note(w, (struct history_event){
                        .kind = HISTORY_LEFT, .lock = l, .value = n});
    }
}
