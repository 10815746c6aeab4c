/*
 * Breadth-first search over the states of a model. The search keeps whole
 * states, not their hashes, so that it never confuses two states. The three
 * servers are interchangeable: a state is stored with its servers in sorted
 * order. See redlock.h.
 */
#include "redlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 3400000, INDEX_BITS = 23, DEEPER = 8 };

struct search {
    const struct model *m;
    struct state *states; /* in order of discovery */
    uint32_t *parents;
    uint32_t *index;         /* hash table: state numbers + 1, or 0 for none */
    uint32_t n, limit, bits; /* the index has 1 << bits entries */
};

static void swap_if_greater(struct server *a, struct server *b)
{
    if (memcmp(a, b, sizeof(*a)) > 0) {
        struct server c = *a;

        *a = *b;
        *b = c;
    }
}

static void sort_servers(struct state *s)
{
    swap_if_greater(&s->server[0], &s->server[1]);
    swap_if_greater(&s->server[1], &s->server[2]);
    swap_if_greater(&s->server[0], &s->server[1]);
}

static uint32_t slot_of(const struct state *s, uint32_t bits)
{
    uint64_t words[(sizeof(*s) + 7) / 8] = {0}, h = 0;

    memcpy(words, s, sizeof(*s));
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return (uint32_t)(h >> (64 - bits));
}

/* Adds the state unless it is known. Returns false if a new state does not
 * fit. */
static bool add(struct search *f, const struct state *s, uint32_t parent)
{
    uint32_t slot = slot_of(s, f->bits);

    while (f->index[slot]) {
        if (!memcmp(&f->states[f->index[slot] - 1], s, sizeof(*s)))
            return true;
        slot = (slot + 1) & ((1u << f->bits) - 1);
    }
    if (f->n == f->limit)
        return false;
    f->states[f->n] = *s;
    f->parents[f->n] = parent;
    f->index[slot] = ++f->n;
    return true;
}

/* Returns what other clients can observe of a state: the keys and counters, the
 * tokens used, and which of the clients in `set` (one bit per client) believe
 * that they hold the lock. If `swap`, the two clients are exchanged. */
static struct state visible(const struct state *s, unsigned set, bool swap)
{
    struct state seen = {.now = s->now, .used = s->used};

    for (unsigned k = 0; k < SERVERS; k++) {
        const struct server *v = &s->server[k];

        seen.server[k].owner =
            (uint8_t)(swap && v->owner ? 3 - v->owner : v->owner);
        seen.server[k].expiry = v->expiry;
        seen.server[k].base = v->owner ? v->base : 0;
        seen.server[k].top = v->top;
        seen.server[k].out = v->out;
    }
    for (unsigned i = 0; i < 2; i++)
        if (set & 1u << i && model_believes(s, &s->client[i]))
            seen.client[swap ? 1 - i : i].token = s->client[i].token;
    sort_servers(&seen);
    return seen;
}

static size_t depth_of(const struct search *f, uint32_t n)
{
    size_t depth = 0;

    for (; n; n = f->parents[n])
        depth++;
    return depth;
}

/* Finds the step from *at whose result, with the servers sorted, is `next`, or
 * a step that is a violation if `next` is NULL. Prints that step and moves *at
 * by it. The servers of *at itself are not sorted, so each keeps its number. */
static void follow(const struct model *m, struct state *at,
                   const struct state *next)
{
    struct step steps[STEPS_MAX];
    size_t n = model_steps(m, at, steps);

    for (size_t i = 0; i < n; i++) {
        struct state sorted = steps[i].after;

        sort_servers(&sorted);
        if (next ? steps[i].violation || memcmp(&sorted, next, sizeof(sorted))
                 : !steps[i].violation)
            continue;
        model_tell(at, &steps[i]);
        *at = steps[i].after;
        return;
    }
    abort();
}

static void print_trace(const struct search *f, uint32_t last)
{
    size_t depth = depth_of(f, last);
    uint32_t *path = calloc(depth + 1, sizeof(*path));
    struct state at = model_first(f->m);

    if (!path)
        abort();
    for (size_t i = depth + 1; i-- > 0; last = f->parents[last])
        path[i] = last;
    for (size_t i = 1; i <= depth; i++)
        follow(f->m, &at, &f->states[path[i]]);
    follow(f->m, &at, NULL);
    free(path);
}

static void explore(struct search *f, struct outcome *o, bool trace)
{
    struct step steps[STEPS_MAX];

    for (uint32_t at = 0; at < f->n; at++) {
        size_t n = model_steps(f->m, &f->states[at], steps);

        for (size_t i = 0; i < n; i++) {
            if (steps[i].violation) {
                o->violation = steps[i].violation;
                o->depth = depth_of(f, at) + 1;
                if (trace)
                    print_trace(f, at);
                return;
            }
            sort_servers(&steps[i].after);
            if (!add(f, &steps[i].after, at)) {
                o->full = true;
                return;
            }
        }
    }
    o->depth = depth_of(f, f->n - 1);
}

static void open_search(struct search *f, const struct model *m)
{
    *f = (struct search){.m = m};
    f->limit = m->size == DEEP ? STATES_MAX * DEEPER : STATES_MAX;
    f->bits = m->size == DEEP ? INDEX_BITS + 3 : INDEX_BITS;
    f->states = malloc(f->limit * sizeof(*f->states));
    f->parents = malloc(f->limit * sizeof(*f->parents));
    f->index = calloc((size_t)1 << f->bits, sizeof(*f->index));
    if (!f->states || !f->parents || !f->index)
        abort();
}

static void close_search(struct search *f)
{
    free(f->states);
    free(f->parents);
    free(f->index);
}

static struct outcome search(struct search *f, const struct model *m,
                             bool trace)
{
    struct outcome o = {0};
    struct state first = model_first(m);

    open_search(f, m);
    add(f, &first, 0);
    explore(f, &o, trace);
    o.states = f->n;
    return o;
}

struct outcome model_search(const struct model *m, bool trace)
{
    struct search f;
    struct outcome o = search(&f, m, trace);

    close_search(&f);
    return o;
}

/* Adds the observable part of each state of m to `seen`. In the reduced search
 * a client believes that it holds the lock until its release is executed,
 * though it may have sent the release earlier. Therefore a reduced state is
 * added once for each set of clients that may still believe so. */
static struct outcome collect(struct search *seen, const struct model *m)
{
    struct search f;
    struct outcome o = search(&f, m, true);

    for (uint32_t i = 0; i < f.n; i++)
        for (unsigned set = m->plain ? 3 : 0; set < 4; set++) {
            struct state a = visible(&f.states[i], set, false);
            struct state b = visible(&f.states[i], set, true);

            add(seen, memcmp(&a, &b, sizeof(a)) < 0 ? &a : &b, 0);
        }
    close_search(&f);
    return o;
}

struct outcome model_compare(const struct model *m, uint32_t *lost)
{
    struct model plain = *m;
    struct search seen;
    struct outcome o;

    plain.plain = true;
    open_search(&seen, m);
    o = collect(&seen, m);
    *lost = seen.n;
    if (!o.violation && !o.full)
        o = collect(&seen, &plain);
    *lost = seen.n - *lost;
    close_search(&seen);
    return o;
}
