/* The rules of servers and clients, right and broken. See redlock.h. */
#include "redlock.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    const struct model *m;
    const struct state *from;
    struct step *steps;
    size_t n;
};

static uint8_t max_of(unsigned a, unsigned b)
{
    return (uint8_t)(a > b ? a : b);
}

static bool is(const struct model *m, enum broken broken)
{
    return m->broken == broken;
}

/* Returns the value that client i sends as owner. */
static uint8_t value_of(const struct model *m, unsigned i)
{
    return (uint8_t)(is(m, VALUE_REUSED) && i == 1 ? 1 : i + 1);
}

/* Returns the amount by which a grant raises top above base: B, but never more
 * than the lease. If clocks do not advance (unit 0), a lease has no length in
 * clock units, and the result is B. */
static uint8_t reserve_of(const struct model *m, unsigned i)
{
    unsigned most = (unsigned)m->unit * m->lease[i];

    if (is(m, RESERVE_TOO_MUCH) || !m->unit || m->reserve < most)
        return m->reserve;
    return (uint8_t)most;
}

static unsigned majority_of(const struct model *m)
{
    return is(m, MAJORITY_ONE) ? 1 : SERVERS / 2 + 1;
}

static bool is_out(const struct model *m, const struct state *s,
                   const struct server *v, unsigned i)
{
    if (is(m, OWN_STAY_OUT) && v->out)
        return s->now + m->max_lease < v->out + m->lease[i];
    return s->now < v->out;
}

static bool in(uint8_t phase, enum phase a, enum phase b)
{
    return phase == a || phase == b;
}

bool model_believes(const struct state *s, const struct client *c)
{
    return in(c->phase, HOLDING, RENEWING) && c->deadline > s->now;
}

static void delete_key(struct server *v)
{
    v->owner = 0;
    v->expiry = 0;
}

static void send_all(struct state *s, unsigned client, unsigned what)
{
    for (unsigned k = 0; k < SERVERS; k++)
        s->server[k].mail[client] |= (uint8_t)what;
}

/* The following functions are the reductions: they make equivalent states
 * equal. Each drops only what no rule can use again. A search with .plain works
 * without them. */

/* Returns a number below which the server's top never falls unless the server
 * restarts. */
static uint8_t floor_of(const struct server *v)
{
    return v->owner ? v->base : v->top;
}

static void tidy_mail(const struct model *m, struct state *s, unsigned i)
{
    const struct client *c = &s->client[i];

    for (unsigned k = 0; k < SERVERS; k++) {
        struct server *v = &s->server[k];
        unsigned mail = v->mail[i];

        if (c->phase != TRYING && !is(m, RENEW_EXACT))
            v->answer[i] = 0;
        if (in(c->phase, HOLDING, ENDED))
            mail &= ~(unsigned)ACK;
        /* The client had the key at this server and lost it. Only a renewal can
         * set the key again, with a base of at least the client's token. After
         * that a raise or undo does nothing, and a release does nothing unless
         * it raises top. */
        if (mail & GRANTED && v->owner != value_of(m, i)) {
            if (!is(m, RAISE_ANY_OWNER) && !is(m, VALUE_REUSED))
                mail &= ~(unsigned)RAISE;
            if (!is(m, UNDO_ANY_OWNER) && !is(m, VALUE_REUSED))
                mail &= ~(unsigned)UNDO;
            if (!(mail & RENEWALS) && !m->restarts && floor_of(v) >= c->token &&
                !is(m, RELEASE_ANY_OWNER))
                mail &= ~(unsigned)RELEASE;
        }
        v->mail[i] = (uint8_t)mail;
    }
}

static bool token_matters(const struct state *s, unsigned i)
{
    if (s->client[i].phase != ENDED)
        return true;
    for (unsigned k = 0; k < SERVERS; k++)
        if (s->server[k].mail[i] & (RAISE | RENEWALS | RELEASE))
            return true;
    return false;
}

/* Applies the passing of deadlines to a client. An attempt whose deadline has
 * passed can only be undone. A renewal that can no longer succeed is forgotten,
 * though its requests are still pending. */
static void lapse(const struct model *m, struct state *s, unsigned i)
{
    struct client *c = &s->client[i];

    if (!c->deadline && in(c->phase, TRYING, RAISING)) {
        c->phase = ENDED;
        if (!m->no_undo)
            send_all(s, i, UNDO);
    }
    if (c->phase == RENEWING &&
        (c->renewed <= s->now || (!c->deadline && !m->revives)))
        c->phase = HOLDING;
    if (c->phase == HOLDING && !c->deadline && m->no_release &&
        c->rounds == m->renewals)
        c->phase = ENDED;
}

/* Returns whether a rule reads the base of a server that has no key. */
static bool reads_old_base(const struct model *m)
{
    return is(m, RENEW_SETS_BASE) || is(m, UNDO_ANY_OWNER) ||
           is(m, RAISE_ANY_OWNER);
}

static void tidy(const struct model *m, struct state *s)
{
    for (unsigned k = 0; k < SERVERS; k++) {
        struct server *v = &s->server[k];

        if (v->owner && v->expiry <= s->now)
            delete_key(v);
        if (!v->owner && !m->plain && !reads_old_base(m))
            v->base = 0;
        if (v->out <= s->now)
            v->out = 0;
    }
    for (unsigned i = 0; i < m->clients; i++) {
        struct client *c = &s->client[i];

        if (c->deadline <= s->now)
            c->deadline = 0;
        if (m->plain)
            continue;
        lapse(m, s, i);
        if (c->phase != RENEWING)
            c->renewed = 0;
        if (!in(c->phase, TRYING, RAISING))
            c->seen = 0;
        if (c->phase == ENDED)
            c->rounds = c->deadline = 0;
        tidy_mail(m, s, i);
        if (!token_matters(s, i))
            c->token = 0;
    }
}

static struct step *begin(struct writer *w, enum action action, unsigned client,
                          unsigned server)
{
    struct step *t = &w->steps[w->n];

    if (w->n == STEPS_MAX)
        abort();
    w->n++;
    t->after = *w->from;
    t->action = action;
    t->lead = NOTHING;
    t->client = (uint8_t)client;
    t->server = (uint8_t)server;
    t->majority = 0;
    t->violation = NULL;
    return t;
}

static void end(struct writer *w, struct step *t)
{
    tidy(w->m, &t->after);
}

/* Ends a step in which a server executed a request; `yes` says whether it
 * accepted the request. The step is removed if the request was refused and has
 * changed nothing, because the state is then equivalent to the one in which the
 * request is still pending. */
static void end_run(struct writer *w, struct step *t, bool yes)
{
    const struct server *a = &w->from->server[t->server];
    const struct server *b = &t->after.server[t->server];

    if (!yes && !w->m->plain && a->owner == b->owner &&
        a->expiry == b->expiry && a->base == b->base && a->top == b->top)
        w->n--;
    else
        end(w, t);
}

static void run_grant(struct writer *w, struct step *t, uint8_t offset)
{
    const struct model *m = w->m;
    unsigned i = t->client;
    struct server *v = &t->after.server[t->server];
    unsigned apart = is(m, CLOCKS_APART) ? 3 : 1;
    unsigned clock = (unsigned)m->unit * t->after.now + offset * apart;
    bool again = v->mail[i] & GRANTED, yes = again || !v->owner;

    if (again) {
        v->mail[i] |= ACK;
    } else if (yes) {
        v->owner = value_of(m, i);
        v->expiry = (uint8_t)(t->after.now + m->lease[i]);
        v->base = max_of(v->top, clock);
        v->top = (uint8_t)(v->base + reserve_of(m, i));
        v->answer[i] = v->base;
        v->mail[i] |= GRANTED;
    }
    end_run(w, t, yes);
}

static void run_raise(struct writer *w, struct step *t)
{
    const struct model *m = w->m;
    unsigned i = t->client;
    struct server *v = &t->after.server[t->server];
    const struct client *c = &t->after.client[i];
    bool own = v->owner == value_of(m, i) || is(m, RAISE_ANY_OWNER);
    bool yes = own && (v->base < c->token || is(m, RAISE_ANY_BASE));

    v->mail[i] &= (uint8_t)~RAISE;
    if (yes) {
        v->top = max_of(v->top, c->token);
        if (c->phase == RAISING)
            v->mail[i] |= ACK;
    }
    end_run(w, t, yes);
}

/* Sets base and top after a renewal that has set the key, or after a release by
 * the owner. */
static void settle(const struct model *m, struct server *v, uint8_t token)
{
    v->base = is(m, RELEASE_SETS_TOKEN) ? token : max_of(v->base, token);
    v->top = v->base;
}

static void run_renew(struct writer *w, struct step *t, unsigned round)
{
    const struct model *m = w->m;
    unsigned i = t->client;
    struct server *v = &t->after.server[t->server];
    const struct client *c = &t->after.client[i];
    bool own = v->owner == value_of(m, i), none = !v->owner;

    v->mail[i] &= (uint8_t) ~(RENEW << round);
    /* If there is no key, another client may have locked and released between
     * the grant and this renewal. The token of that client is at most top, but
     * may be greater than base. */
    if (none && !is(m, RENEW_SETS_BASE))
        v->base = v->top;
    /* The mutant renew-exact writes the base of the grant's reply. That base is
     * wrong if the key has been set again since the grant. */
    if (own && is(m, RENEW_EXACT) && !round && v->mail[i] & GRANTED)
        v->base = v->answer[i];
    if (own || none) {
        settle(m, v, c->token);
        v->owner = value_of(m, i);
        v->expiry = (uint8_t)(t->after.now + m->lease[i]);
    } else {
        v->top = max_of(v->top, c->token);
    }
    if (own && c->phase == RENEWING && c->rounds == round + 1)
        v->mail[i] |= ACK;
    end_run(w, t, own);
}

static void run_release(struct writer *w, struct step *t)
{
    const struct model *m = w->m;
    struct server *v = &t->after.server[t->server];
    uint8_t token = t->after.client[t->client].token;
    bool own = v->owner == value_of(m, t->client);

    v->mail[t->client] &= (uint8_t)~RELEASE;
    if (own && !is(m, DROP_LEAVES_TOP))
        settle(m, v, token);
    else
        v->top = max_of(v->top, token);
    if (own || is(m, RELEASE_ANY_OWNER))
        delete_key(v);
    end_run(w, t, false);
}

static void run_undo(struct writer *w, struct step *t)
{
    const struct model *m = w->m;
    unsigned i = t->client;
    struct server *v = &t->after.server[t->server];

    v->mail[i] &= (uint8_t)~UNDO;
    if (v->owner == value_of(m, i) || is(m, UNDO_ANY_OWNER)) {
        if (!is(m, DROP_LEAVES_TOP))
            v->top = v->base;
        if (is(m, UNDO_BELOW_BASE) && v->top)
            v->top--;
        delete_key(v);
    }
    end_run(w, t, false);
}

/* The steps of clients follow. Requests have no effect before the first of them
 * is executed, and a client that sends them later has a later deadline. So the
 * model misses nothing if a client sends its requests only just before the
 * first of them is executed: sending and this execution are one step. A raise
 * is a step of its own, because it may be executed after the undo. */

static bool may_start(const struct model *m, const struct state *s, unsigned i)
{
    /* In the mutant value-reused one client makes both attempts, one after the
     * other. */
    if (is(m, VALUE_REUSED) && i == 1)
        return s->client[0].phase == ENDED;
    /* Idle clients with equal leases are interchangeable: they start in numeric
     * order. */
    return !i || m->lease[i] != m->lease[i - 1] ||
           s->client[i - 1].phase != IDLE;
}

/* Marks renewals as sent, up to the given number of rounds. */
static void send_renewals(struct state *s, unsigned i, unsigned rounds)
{
    while (s->client[i].rounds < rounds)
        send_all(s, i, RENEW << s->client[i].rounds++);
}

static struct step *lead(struct writer *w, enum action action, unsigned i,
                         unsigned k, enum action first, unsigned rounds)
{
    struct step *t = begin(w, action, i, k);
    struct state *s = &t->after;
    struct client *c = &s->client[i];

    t->lead = first;
    if (first == START) {
        c->phase = TRYING;
        c->deadline = (uint8_t)(s->now + w->m->lease[i]);
        if (w->m->jumps)
            c->seen = s->used;
    } else if (first == GIVE_UP) {
        c->phase = ENDED;
        send_all(s, i, UNDO);
    } else if (first == LET_GO) {
        send_renewals(s, i, rounds);
        send_all(s, i, is(w->m, UNDO_AFTER_USE) ? UNDO : RELEASE);
        c->phase = ENDED;
    } else if (first == START_RENEWAL) {
        send_renewals(s, i, rounds);
        c->phase = RENEWING;
        c->renewed = (uint8_t)(s->now + w->m->lease[i]);
        for (unsigned j = 0; j < SERVERS && !is(w->m, RENEW_TWO_ROUNDS); j++)
            s->server[j].mail[i] &= (uint8_t)~ACK;
    }
    return t;
}

static void grant_steps(struct writer *w, unsigned i, unsigned k)
{
    const struct model *m = w->m;
    const struct server *v = &w->from->server[k];
    uint8_t phase = w->from->client[i].phase;
    enum action first = phase == IDLE ? START : NOTHING;
    bool again = is(m, GRANT_TWICE) && phase == TRYING &&
                 v->mail[i] & GRANTED && v->owner == value_of(m, i);

    if ((v->mail[i] & GRANTED && !again) || (first && m->plain))
        return;
    if (phase == IDLE && !may_start(m, w->from, i))
        return;
    for (unsigned o = 0; o < OFFSETS; o++) {
        run_grant(w, lead(w, RUN_GRANT, i, k, first, 0), m->offset[o]);
        if (!m->offset[o] || v->owner)
            break;
    }
}

/* Adds the step in which client i does `first`, and server k then runs one
 * request of that client. If `first` sends renewals, it starts renewal rounds
 * up to `round`. RUN_RENEW runs the renewal of that round. */
static void run(struct writer *w, enum action action, unsigned i, unsigned k,
                enum action first, unsigned round)
{
    struct step *t = lead(w, action, i, k, first, round);

    if (action == RUN_RENEW)
        run_renew(w, t, round - 1);
    else if (action == RUN_RELEASE)
        run_release(w, t);
    else
        run_undo(w, t);
}

/* Adds the steps in which client i sends requests and server k runs the first
 * of them. */
static void lead_steps(struct writer *w, unsigned i, unsigned k)
{
    const struct model *m = w->m;
    const struct client *c = &w->from->client[i];
    bool undo = is(m, UNDO_AFTER_USE);

    if (in(c->phase, TRYING, RAISING) && !m->no_undo)
        run(w, RUN_UNDO, i, k, GIVE_UP, 0);
    if (!in(c->phase, HOLDING, RENEWING))
        return;
    for (unsigned r = c->rounds + 1u; r <= m->renewals; r++)
        run(w, RUN_RENEW, i, k, START_RENEWAL, r);
    for (unsigned r = c->rounds; r <= m->renewals && !m->no_release; r++)
        run(w, undo ? RUN_UNDO : RUN_RELEASE, i, k, LET_GO, r);
}

static void server_steps(struct writer *w, unsigned i, unsigned k)
{
    uint8_t mail = w->from->server[k].mail[i];

    if (is_out(w->m, w->from, &w->from->server[k], i))
        return;
    grant_steps(w, i, k);
    if (mail & RAISE)
        run_raise(w, begin(w, RUN_RAISE, i, k));
    for (unsigned r = 0; r < ROUNDS; r++)
        if (mail & RENEW << r)
            run(w, RUN_RENEW, i, k, NOTHING, r + 1);
    if (mail & RELEASE)
        run(w, RUN_RELEASE, i, k, NOTHING, 0);
    if (mail & UNDO)
        run(w, RUN_UNDO, i, k, NOTHING, 0);
    if (!w->m->plain)
        lead_steps(w, i, k);
}

/* Adds each action of the client as a step of its own, for a search without the
 * reductions. */
static void plain_steps(struct writer *w, unsigned i)
{
    const struct model *m = w->m;
    const struct client *c = &w->from->client[i];

    if (c->phase == IDLE && may_start(m, w->from, i))
        end(w, lead(w, NOTHING, i, 0, START, 0));
    if (in(c->phase, TRYING, RAISING) && !m->no_undo)
        end(w, lead(w, NOTHING, i, 0, GIVE_UP, 0));
    if (!in(c->phase, HOLDING, RENEWING))
        return;
    if (c->rounds < m->renewals && (c->deadline || m->revives))
        end(w, lead(w, NOTHING, i, 0, START_RENEWAL, c->rounds + 1u));
    if (!m->no_release)
        end(w, lead(w, NOTHING, i, 0, LET_GO, 0));
}

static const char *check(const struct model *m, const struct state *s,
                         unsigned i, bool first)
{
    const struct client *c = &s->client[i];

    for (unsigned j = 0; j < m->clients; j++) {
        const struct client *d = &s->client[j];

        if (j == i)
            continue;
        if (!m->jumps && model_believes(s, d))
            return "two clients believe that they hold the lock";
        if (m->jumps && first && d->token == c->token && model_believes(s, d))
            return "two clients use the same token";
    }
    if (first && c->token <= (m->jumps ? c->seen : s->used))
        return "the token is not greater than one that was used earlier";
    if (!first && !m->jumps && c->token < s->used)
        return "a hold goes on after a greater token was used";
    return NULL;
}

static void hold(struct writer *w, struct step *t)
{
    struct state *s = &t->after;
    struct client *c = &s->client[t->client];

    if (is(w->m, DEADLINE_FROM_REPLY))
        c->deadline = (uint8_t)(s->now + w->m->lease[t->client]);
    c->phase = HOLDING;
    t->violation = check(w->m, s, t->client, true);
    s->used = max_of(s->used, c->token);
    end(w, t);
}

/* Adds the step in which client i decides, from the replies of the servers
 * whose bits are in `set`. */
static void decide(struct writer *w, unsigned i, unsigned set)
{
    const struct state *s = w->from;
    unsigned votes = 0, token = 0, least = UINT8_MAX;
    struct step *t;

    for (unsigned k = 0; k < SERVERS; k++) {
        const struct server *v = &s->server[k];

        if (!(set & 1u << k))
            continue;
        if (!(v->mail[i] & GRANTED))
            return;
        votes += v->mail[i] & ACK ? 2 : 1;
        token = max_of(token, v->answer[i] + 1u);
        if (v->answer[i] < least)
            least = v->answer[i];
    }
    if (votes < majority_of(w->m))
        return;
    t = begin(w, USE, i, 0);
    t->majority = (uint8_t)set;
    t->after.client[i].token = (uint8_t)token;
    if (token <= least + reserve_of(w->m, i) || is(w->m, NO_RESERVATION)) {
        hold(w, t);
        return;
    }
    t->action = SECOND_ROUND;
    t->after.client[i].phase = RAISING;
    if (is(w->m, RAISE_DEADLINE))
        t->after.client[i].deadline = (uint8_t)(s->now + w->m->lease[i]);
    for (unsigned k = 0; k < SERVERS; k++) {
        t->after.server[k].mail[i] &= (uint8_t)~ACK;
        if (set & 1u << k || is(w->m, RAISE_ANY_BASE))
            t->after.server[k].mail[i] |= RAISE;
    }
    end(w, t);
}

static unsigned acks(const struct state *s, unsigned i, unsigned *set)
{
    unsigned n = 0;

    *set = 0;
    for (unsigned k = 0; k < SERVERS; k++)
        if (s->server[k].mail[i] & ACK) {
            *set |= 1u << k;
            n++;
        }
    return n;
}

static void client_steps(struct writer *w, unsigned i)
{
    const struct model *m = w->m;
    const struct client *c = &w->from->client[i];
    unsigned set, n = acks(w->from, i, &set), need = majority_of(m);
    struct step *t;

    if (m->plain)
        plain_steps(w, i);
    if (!c->deadline && !m->revives)
        return;
    for (unsigned all = 1; c->phase == TRYING && all < 1u << SERVERS; all++)
        decide(w, i, all);
    if (c->phase == RAISING && n >= (is(m, RAISE_MINORITY) ? 1 : need)) {
        t = begin(w, USE_RAISED, i, 0);
        t->majority = (uint8_t)set;
        hold(w, t);
    }
    if (c->phase == RENEWING && n >= need) {
        t = begin(w, RENEWED, i, 0);
        t->majority = (uint8_t)set;
        t->after.client[i].deadline = c->renewed;
        if (is(m, RENEW_FROM_REPLY))
            t->after.client[i].deadline = (uint8_t)(t->after.now + m->lease[i]);
        t->after.client[i].phase = HOLDING;
        t->violation = check(m, &t->after, i, false);
        end(w, t);
    }
}

static void restart(struct writer *w, unsigned k)
{
    struct step *t = begin(w, RESTART, 0, k);
    struct server *v = &t->after.server[k];
    unsigned stay = w->m->max_lease;

    if (is(w->m, NO_STAY_OUT))
        stay = 0;
    if (is(w->m, SHORT_STAY_OUT))
        stay--;
    delete_key(v);
    v->base = v->top = 0;
    v->out = (uint8_t)(t->after.now + stay);
    t->after.restarts--;
    end(w, t);
}

static void world_steps(struct writer *w)
{
    const struct state *s = w->from;

    if (s->now < w->m->horizon) {
        struct step *t = begin(w, TICK, 0, 0);

        t->after.now++;
        end(w, t);
    }
    for (unsigned k = 0; k < SERVERS; k++) {
        if (s->restarts)
            restart(w, k);
        if (w->m->jumps && s->server[k].owner) {
            struct step *t = begin(w, EXPIRE_EARLY, 0, k);

            delete_key(&t->after.server[k]);
            end(w, t);
        }
    }
}

size_t model_steps(const struct model *m, const struct state *s,
                   struct step *steps)
{
    struct writer w = {m, s, steps, 0};

    world_steps(&w);
    for (unsigned i = 0; i < m->clients; i++) {
        client_steps(&w, i);
        for (unsigned k = 0; k < SERVERS; k++)
            server_steps(&w, i, k);
    }
    return w.n;
}

struct state model_first(const struct model *m)
{
    struct state s;

    memset(&s, 0, sizeof(s));
    s.restarts = m->restarts;
    return s;
}
