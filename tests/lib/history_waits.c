/*
 * BOUND and WAKE: a lock that nobody claims while somebody waits has to go to
 * one of those who wait, soon.
 *
 * For each lock there is at any time a moment by which the next grant is due:
 * wake_ns after the lock was free, somebody waited and no fault was under way
 * any more; after a death TTL + tick + 1 s. Something that happens on the lock
 * later than that shows a violation. Waits of processes that are stopped or
 * dead do not count.
 */
#include "history_table.h"

/* Deaths and stops change who waits: counted anew. */
static void recount(struct table *t, const struct history *h, int64_t at)
{
    for (uint32_t l = 0; l < t->locks; l++) {
        uint32_t n = 0;

        for (uint32_t o = 0; o < h->owners; o++) {
            const struct stand *s = &t->stand[(size_t)o * t->locks + l];

            n += s->pending && !t->away[s->process];
        }
        if (n && !t->place[l].pending)
            t->place[l].pending_at = at;
        t->place[l].pending = n;
    }
}

/* What somebody who is gone had is free by then. */
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

static void release_claimant(struct table *t, const struct history_event *e,
                             uint32_t lock)
{
    struct place *p = &t->place[lock];
    const struct stand *s;

    if (!p->claimant)
        return;
    s = &t->stand[(size_t)(p->claimant - 1) * t->locks + lock];
    if (s->count)
        return;
    p->free_at = s->until < e->at ? s->until : e->at;
    p->claimant = 0;
}

static int64_t due(const struct table *t, uint32_t lock,
                   const struct history_rules *r, const char **check)
{
    const struct place *p = &t->place[lock];
    int64_t free_at = p->free_at, wake, bound;

    if (p->claimant)
        free_at = t->stand[(size_t)(p->claimant - 1) * t->locks + lock].until;
    if (!p->pending || free_at == HISTORY_NEVER ||
        (r->stop_keeps && t->stopped))
        return HISTORY_NEVER;
    wake = later(later(free_at, p->pending_at), p->excused) + r->wake_ns;
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
        if (!p->pending++)
            p->pending_at = e->at;
        break;
    case HISTORY_RETURN:
        if (s->pending && p->pending)
            p->pending--;
        s->pending = false;
        if (e->result)
            break;
        /* One that comes back after its own deadline holds nothing. */
        if (claims(s, e->at) || !p->claimant)
            p->claimant = e->owner + 1;
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
        recount(t, h, e->at);
        for (uint32_t l = 0; l < t->locks; l++)
            release_claimant(t, e, l);
        break;
    case HISTORY_FAULT:
        excuse_all(t, e, r);
        break;
    default:
        break;
    }
    release_claimant(t, e, e->lock);
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
