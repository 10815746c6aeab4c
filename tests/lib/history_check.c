#include "history_table.h"

#include <inttypes.h>
#include <stdlib.h>

static void raise_to(struct place *p, uint64_t token, bool exclusive)
{
    if (token > p->token)
        p->token = token;
    if (exclusive && token > p->exclusive)
        p->exclusive = token;
}

bool history_check_me(const struct history *h, const struct history_rules *r,
                      struct history_verdict *v)
{
    struct table t = history_table_new(h);
    uint64_t bar;
    bool ok = true;

    (void)r;
    for (size_t i = 0; ok && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        struct place *p = &t.place[e->lock];

        if ((e->kind != HISTORY_READ && e->kind != HISTORY_WRITE) || e->result)
            continue;
        bar = e->share ? p->exclusive : p->token;
        if (e->token < bar)
            ok = history_against(v, "ME", h, i,
                                 "token %" PRIu64 " accepted after %" PRIu64,
                                 e->token, bar);
        raise_to(p, e->token, !e->share);
        if (e->kind == HISTORY_WRITE) {
            p->writes++;
            p->value = e->value;
        }
        if (ok && p->value != p->writes)
            ok = history_against(v, "ME", h, i,
                                 "%" PRIu64
                                 " accepted writes, but the counter is "
                                 "%" PRIu64,
                                 p->writes, p->value);
    }
    return history_table_free(&t, ok);
}

/* Called when a hold of the event's owner has just begun: returns false, with a
 * verdict, if the holders' shares exceed the whole of the lock. */
static bool claim_begins(struct table *t, const struct history *h, size_t i,
                         struct history_verdict *v)
{
    const struct history_event *e = &h->event[i];
    struct place *p = &t->place[e->lock];
    uint64_t sum = 0;
    uint32_t other = 0;

    for (uint32_t j = 0; j < p->holders; j++) {
        const struct stand *s = stand_at(t, p->holder[j], e->lock);

        if (!claims(s, e->at))
            continue;
        sum += s->share;
        if (p->holder[j] != e->owner)
            other = p->holder[j];
    }
    if (sum <= p->whole)
        return true;
    return history_against(v, "CLAIM", h, i,
                           "lock %u: owner %u and owner %u; %" PRIu64
                           " of %u are out",
                           e->lock, other, e->owner, sum, p->whole);
}

bool history_check_claim(const struct history *h, const struct history_rules *r,
                         struct history_verdict *v)
{
    struct table t = history_table_new(h);
    bool ok = true;

    for (size_t i = 0; ok && !r->lossy && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        struct stand *s = stand_of(&t, e);
        bool before = claims(s, e->at);

        history_follow(&t, h, e);
        if ((e->kind == HISTORY_RETURN || e->kind == HISTORY_DEADLINE) &&
            !before && claims(s, e->at))
            ok = claim_begins(&t, h, i, v);
    }
    return history_table_free(&t, ok);
}

/* Checks the token of a granted acquire. `known` means that the server may have
 * forgotten holds, and that this grant is shared or repeats the last token of
 * the owner's process (a local hand-over). Then the token may be lower than one
 * that the server has given to another process since; the resource will refuse
 * the lower token. */
static bool tok_returned(struct table *t, const struct history *h, size_t i,
                         bool known, struct history_verdict *v)
{
    const struct history_event *e = &h->event[i];
    struct stand *s = stand_of(t, e);
    struct place *p = &t->place[e->lock];

    if (s->count && s->token != e->token)
        return history_against(v, "TOK", h, i,
                               "owner %u: reentry changed the token", e->owner);
    if (!s->count && !known &&
        (e->token < s->floor ||
         (e->token == s->floor && s->floor_process != e->process &&
          is_exclusive(t, e->lock, s->wish))))
        return history_against(v, "TOK", h, i,
                               "lock %u: token %" PRIu64 " after %" PRIu64,
                               e->lock, e->token, s->floor);
    if (e->token > p->token)
        p->token_process = e->process;
    raise_to(p, e->token, is_exclusive(t, e->lock, s->wish));
    return true;
}

static int by_token(const void *a, const void *b)
{
    const struct history_event *x = *(struct history_event *const *)a;
    const struct history_event *y = *(struct history_event *const *)b;

    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    if (x->token != y->token)
        return x->token < y->token ? -1 : 1;
    return 0;
}

/* Collects the events that granted an exclusive hold; returns their number. */
static size_t exclusive_ones(const struct history *h,
                             const struct history_event **out)
{
    struct table t = history_table_new(h);
    size_t n = 0;

    for (size_t i = 0; i < h->len; i++) {
        const struct history_event *e = &h->event[i];

        history_follow(&t, h, e);
        if (e->kind == HISTORY_RETURN && !e->result &&
            is_exclusive(&t, e->lock, stand_of(&t, e)->share))
            out[n++] = e;
    }
    history_table_free(&t, true);
    return n;
}

/* Checks that no two processes ever had the same token of an exclusive hold. */
static bool tok_unique(const struct history *h, struct history_verdict *v)
{
    const struct history_event **e = calloc(h->len + 1, sizeof(*e));
    size_t n;
    bool ok = true;

    if (!e)
        abort();
    n = exclusive_ones(h, e);
    qsort(e, n, sizeof(*e), by_token);
    for (size_t i = 1; ok && i < n; i++)
        if (!by_token(&e[i - 1], &e[i]) && e[i - 1]->process != e[i]->process)
            ok = history_against(v, "TOK", h, (size_t)(e[i] - h->event),
                                 "lock %u: token %" PRIu64 " twice", e[i]->lock,
                                 e[i]->token);
    free(e);
    return ok;
}

bool history_check_tok(const struct history *h, const struct history_rules *r,
                       struct history_verdict *v)
{
    struct table t = history_table_new(h);
    uint64_t *last = calloc((size_t)h->processes * h->locks + 1, sizeof(*last));
    bool ok = true;

    if (!last)
        abort();
    for (size_t i = 0; ok && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        uint64_t *mine = &last[(size_t)e->process * h->locks + e->lock];
        struct stand *s = stand_of(&t, e);

        if (e->kind == HISTORY_CALL) {
            s->floor = r->mingled && !is_exclusive(&t, e->lock, e->share)
                           ? t.place[e->lock].exclusive
                           : t.place[e->lock].token;
            s->floor_process = t.place[e->lock].token_process;
        } else if (e->kind == HISTORY_RETURN && !e->result) {
            bool known = *mine == e->token ||
                         /* Tokens of shared holds may repeat. */
                         !is_exclusive(&t, e->lock, s->wish);

            ok = tok_returned(&t, h, i, r->lossy && known, v);
            *mine = e->token;
        }
        history_follow(&t, h, e);
    }
    free(last);
    return history_table_free(&t, ok) && tok_unique(h, v);
}

bool history_check_turn(const struct history *h, const struct history_rules *r,
                        struct history_verdict *v)
{
    struct table t = history_table_new(h);
    bool ok = true;

    for (size_t i = 0; ok && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        struct place *p = &t.place[e->lock];

        if (e->kind == HISTORY_RETURN && !e->result &&
            !stand_of(&t, e)->count &&
            is_exclusive(&t, e->lock, stand_of(&t, e)->wish)) {
            if (e->token != p->token)
                p->value = 0;
            p->token = e->token;
            if (p->value++ > r->turns)
                ok = history_against(v, "TURN", h, i,
                                     "lock %u: %" PRIu64 " owners on one grant",
                                     e->lock, p->value);
        }
        history_follow(&t, h, e);
    }
    return history_table_free(&t, ok);
}

bool history_check_cap(const struct history *h, const struct history_rules *r,
                       struct history_verdict *v)
{
    struct table t = history_table_new(h);
    bool ok = true;

    (void)r;
    for (size_t i = 0; ok && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        struct stand *s = stand_of(&t, e);

        history_follow(&t, h, e);
        if ((e->kind == HISTORY_RETURN || e->kind == HISTORY_DEADLINE) &&
            !e->result && s->count && s->until > s->cap)
            ok = history_against(v, "CAP", h, i, "owner %u: %.6f s too long",
                                 e->owner, (double)(s->until - s->cap) / 1e9);
    }
    return history_table_free(&t, ok);
}

bool history_check_leak(const struct history *h, const struct history_rules *r,
                        struct history_verdict *v)
{
    (void)r;
    for (size_t i = 0; i < h->len; i++)
        if (h->event[i].kind == HISTORY_LEFT && h->event[i].value)
            return history_against(
                v, "LEAK", h, i, "lock %u, process %u: %" PRIu64 " left behind",
                h->event[i].lock, h->event[i].process, h->event[i].value);
    return true;
}

static bool ret_overdue(const struct table *t, const struct stand *s,
                        int64_t at)
{
    return s->back_by != HISTORY_NEVER && s->process != UINT32_MAX &&
           !t->away[s->process] &&
           at > later(s->back_by, t->resumed[s->process]) + SECOND;
}

bool history_check_ret(const struct history *h, const struct history_rules *r,
                       struct history_verdict *v)
{
    struct table t = history_table_new(h);
    size_t n = (size_t)h->owners * h->locks;
    bool ok = true;

    for (size_t i = 0; ok && i < h->len; i++) {
        const struct history_event *e = &h->event[i];
        struct stand *s = stand_of(&t, e);

        history_follow(&t, h, e);
        if (e->kind == HISTORY_CALL || e->kind == HISTORY_RELEASE) {
            s->back_by = e->until;
        } else if (e->kind == HISTORY_RETURN || e->kind == HISTORY_RELEASED) {
            if (ret_overdue(&t, s, e->at - r->grace_ns))
                ok = history_against(v, "RET", h, i, "owner %u is late",
                                     e->owner);
            s->back_by = HISTORY_NEVER;
        } else if (e->kind == HISTORY_STOPPED) {
            t.away[e->process] = STOPPED;
        } else if (e->kind == HISTORY_KILLED) {
            t.away[e->process] = DEAD;
        } else if (e->kind == HISTORY_CONTINUED) {
            t.away[e->process] = PRESENT;
            t.resumed[e->process] = e->at;
        } else if (e->kind == HISTORY_END) {
            for (size_t j = 0; ok && j < n; j++)
                if (ret_overdue(&t, &t.stand[j], e->at - r->grace_ns))
                    ok = history_against(v, "RET", h, i,
                                         "owner %zu never came back",
                                         j / t.locks);
        }
    }
    return history_table_free(&t, ok);
}

bool history_check(const struct history *h, const struct history_rules *r,
                   struct history_verdict *v)
{
    history_check_fn *const all[] = {history_check_claim, history_check_me,
                                     history_check_tok,   history_check_turn,
                                     history_check_cap,   history_check_waits,
                                     history_check_ret,   history_check_leak};

    v->check = NULL;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (!all[i](h, r, v))
            return false;
    return true;
}
