/*
 * BOUND and WAKE: a lock that is free while clients wait must soon be granted
 * to one of them. At any time, each lock that is free for all its waiters has a
 * time by which the next grant is due. The due time is wake_ns after the latest
 * of four moments: the lock became free for its waiters, it was last granted,
 * the last fault ended, and a process was last continued. After a death, or a
 * stop without `stop_keeps`, the due time is at least TTL + tick + 1 s after
 * that event; with `stop_keeps`, no grant is due while a process is stopped.
 * grace_ns is added to every due time. A violation is noticed at the first
 * event on the lock, or the end of the history, after the due time. Waits of
 * stopped and dead processes do not count.
 */
#include "history_table.h"

static void add_waiter(struct place *p, uint32_t owner)
{
    p->waiter[p->waiters++] = owner;
}

static void remove_waiter(struct place *p, uint32_t owner)
{
    for (uint32_t i = 0; i < p->waiters; i++)
        if (p->waiter[i] == owner)
            p->waiter[i--] = p->waiter[--p->waiters];
}

/* Counts the waiters again, after a death, a stop or a continue has changed
 * which of their processes run. */
static void recount(struct table *t, const struct history *h)
{
    for (uint32_t l = 0; l < t->locks; l++) {
        t->place[l].waiters = 0;
        for (uint32_t o = 0; o < h->owners; o++) {
            const struct stand *s = stand_at(t, o, l);

            if (s->pending && !t->away[s->process])
                add_waiter(&t->place[l], o);
        }
    }
}

/* Postpones the time by which each lock must be granted. The limit of WAKE
 * starts again when a fault ends, and at a continue. The holds of a dead
 * process may last for TTL + tick, and so may those of a stopped process unless
 * `stop_keeps` is set. */
static void excuse_all(struct table *t, const struct history_event *e,
                       const struct history_rules *r)
{
    for (uint32_t l = 0; l < t->locks; l++) {
        struct place *p = &t->place[l];

        if (e->kind == HISTORY_FAULT)
            p->excused = later(p->excused, e->until);
        else if (e->kind == HISTORY_CONTINUED)
            p->excused = later(p->excused, e->at);
        else if (e->kind != HISTORY_STOPPED || !r->stop_keeps)
            p->killed = later(p->killed, e->at + r->ttl_ns + r->tick_ns);
    }
}

/* Returns the sum of the shares held at that time; stores when the first of
 * these holds ends. */
static uint64_t claimed(const struct table *t, uint32_t lock, int64_t at,
                        int64_t *ends)
{
    const struct place *p = &t->place[lock];
    uint64_t sum = 0;

    *ends = HISTORY_NEVER;
    for (uint32_t i = 0; i < p->holders; i++) {
        const struct stand *s = stand_at(t, p->holder[i], lock);

        if (!claims(s, at))
            continue;
        sum += s->share;
        *ends = s->until < *ends ? s->until : *ends;
    }
    return sum;
}

/* Returns the time from which every current waiter could be granted the
 * lock. */
static int64_t fits_from(const struct table *t, uint32_t lock, int64_t at)
{
    const struct place *p = &t->place[lock];
    uint64_t most = 0;
    int64_t ends;

    for (uint32_t i = 0; i < p->waiters; i++) {
        uint32_t wish = stand_at(t, p->waiter[i], lock)->wish;

        most = wish > most ? wish : most;
    }
    if (!most)
        return HISTORY_NEVER;
    while (at != HISTORY_NEVER && claimed(t, lock, at, &ends) + most > p->whole)
        at = ends;
    return at;
}

/* Updates free_at, the time from which the lock is free for all waiters, which
 * may be in the future. A grant always sets free_at. Without a grant, free_at
 * keeps its value as long as the lock is free for all waiters. */
static void look_again(struct table *t, uint32_t lock, int64_t at, bool granted)
{
    struct place *p = &t->place[lock];
    int64_t from = fits_from(t, lock, at);

    if (granted || from > at || p->free_at > at)
        p->free_at = from;
}

static int64_t due(const struct table *t, uint32_t lock,
                   const struct history_rules *r, const char **check)
{
    const struct place *p = &t->place[lock];
    int64_t wake, bound;

    if (p->free_at == HISTORY_NEVER || (r->stop_keeps && t->stopped))
        return HISTORY_NEVER;
    wake = later(p->free_at, p->excused) + r->wake_ns;
    bound = p->killed ? p->killed + SECOND : 0;
    *check = bound > wake ? "BOUND" : "WAKE";
    return later(bound, wake) + r->grace_ns;
}

static void waits_follow(struct table *t, const struct history *h,
                         const struct history_rules *r,
                         const struct history_event *e)
{
    struct stand *s = stand_of(t, e);
    struct place *p = &t->place[e->lock];

    switch (e->kind) {
    case HISTORY_CALL:
        s->pending = true;
        add_waiter(p, e->owner);
        break;
    case HISTORY_RETURN:
        s->pending = false;
        remove_waiter(p, e->owner);
        break;
    case HISTORY_KILLED:
    case HISTORY_STOPPED:
    case HISTORY_CONTINUED:
        t->stopped -= t->away[e->process] == STOPPED;
        t->stopped += e->kind == HISTORY_STOPPED;
        t->away[e->process] = e->kind == HISTORY_KILLED    ? DEAD
                              : e->kind == HISTORY_STOPPED ? STOPPED
                                                           : PRESENT;
        excuse_all(t, e, r);
        recount(t, h);
        for (uint32_t l = 0; l < t->locks; l++)
            look_again(t, l, e->at, false);
        break;
    case HISTORY_FAULT:
        excuse_all(t, e, r);
        break;
    default:
        break;
    }
    /* An acquire that returns after the hold's deadline holds nothing, so it
     * does not count as a grant. */
    look_again(t, e->lock, e->at,
               e->kind == HISTORY_RETURN && (e->result == HISTORY_THROUGH ||
                                             (!e->result && claims(s, e->at))));
}

bool history_check_waits(const struct history *h, const struct history_rules *r,
                         struct history_verdict *v)
{
    struct table t = history_table_new(h);
    const char *check = "";
    bool ok = true;

    for (size_t i = 0; ok && !r->unhurried && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        bool all = e->kind == HISTORY_END;

        for (uint32_t l = all ? 0 : e->lock; ok && l < t.locks; l++) {
            int64_t by = due(&t, l, r, &check);

            if (e->at > by)
                ok = history_against(v, check, h, i,
                                     "lock %u: free, waited for and not "
                                     "granted for %.3f s too long",
                                     l, (double)(e->at - by) / 1e9);
            if (!all)
                break;
        }
        history_follow(&t, h, e);
        waits_follow(&t, h, r, e);
    }
    return history_table_free(&t, ok);
}
