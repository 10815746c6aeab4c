/*
 * A server that refuses all requests or some operations, for a while or for
 * ever. No other fault occurs in such a run, so rules apply that are stricter
 * than in other runs (REFUSAL):
 * - The server's answer reaches a waiter within a few round trips, whether
 *   or not the server refuses.
 * - An acquire that begins while attempts are refused does not return busy and
 *   does not time out, unless a local owner had the lock, or the server had
 *   already answered the question, while the acquire waited.
 * - A call that begins after the server has stopped refusing never returns a
 *   refusal.
 * - If the backend knows that a refused request did nothing, nothing is left to
 *   release or abandon.
 */
#include "sim.h"

#define ALL (~0u)
#define LET_GO (1u << HF__RELEASE | 1u << HF__ABANDON)
/* The longest sequence that a waiter waits for is a let_go, the same let_go
 * again because the waiter came after the first one, and an attempt. These are
 * three round trips of at most 2 * delay_hi each, which is 12 ms, because
 * delay_hi is 2 ms. The limit is a little more than twice that time. */
#define A_FEW_ROUND_TRIPS (25 * MS)

static void after(struct world *w, int64_t ns)
{
    heap_push(&w->heap, (struct event){.at = w->now + ns, .kind = EV_SULK});
}

void sulk_begin(struct world *w)
{
    w->sulk = (struct sulk){0};
    if (w->cfg.sulks)
        after(w, rng_between(&w->rng, MS, SEC));
}

/* Lets many idle threads begin an acquire. Called just before and just after
 * the refusals stop. */
static void call_now(struct world *w)
{
    for (uint16_t i = 0; i < w->cfg.procs; i++) {
        struct process *p = &w->proc[i];

        for (uint16_t t = 0; t < w->cfg.threads; t++)
            if (p->thread[t].phase == T_IDLE && rng_chance(&w->rng, 700))
                at_process(p, w->now + rng_between(&w->rng, 1, 2 * MS),
                           EV_THREAD, t, p->thread[t].generation);
    }
}

void sulk_event(struct world *w)
{
    static const unsigned ops[] = {ALL,
                                   ALL,
                                   LET_GO,
                                   1u << HF__RELEASE,
                                   1u << HF__ABANDON,
                                   1u << HF__ATTEMPT,
                                   1u << HF__ATTEMPT | 1u << HF__ABANDON};
    bool stops = w->sulk.ops != 0;
    int64_t lasts =
        rng_chance(&w->rng, 200)
            ? rng_skewed(&w->rng, MS, 4 * w->rules.ttl_ns + 20 * SEC)
            : rng_skewed(&w->rng, 5 * MS, SEC);

    if (!w->quota && !stops)
        return;
    call_now(w);
    if (stops && !w->sulk.ends) {
        w->sulk.ends = true;
        after(w, MS);
        return;
    }
    w->sulk = (struct sulk){.since = w->now};
    if (!stops) {
        w->sulk.ops = ops[rng_between(&w->rng, 0, 6)];
        w->sulk.partly = rng_chance(&w->rng, 300);
        w->tally.sulks++;
        /* Refused let_gos are sent again soon after the refusals end. */
        note_fault(w, w->now + lasts + w->rules.ttl_ns + 2 * SEC);
    }
    trace(w, "the server refuses operations %x", w->sulk.ops);
    after(w, stops ? rng_skewed(&w->rng, 5 * MS, SEC) : lasts);
}

bool sulk_refuses(const struct world *w, const struct message *m)
{
    return w->sulk.ops & 1u << m->op;
}

/* Returns whether a local owner has the lock, or the server has answered the
 * current question. */
static bool is_taken(const struct name *n)
{
    return n->queue.owner || !hf__lease_unanswered(&n->queue.lease);
}

void sulk_watch(struct name *n)
{
    struct world *w = n->process->world;

    if (!w->cfg.sulks)
        return;
    if (!n->queue.head || is_taken(n))
        n->owed_since = HF__NEVER;
    else if (n->owed_since == HF__NEVER)
        n->owed_since = w->now;
    else if (w->now - n->owed_since > A_FEW_ROUND_TRIPS)
        world_fail(w, "REFUSAL", "waiters are not answered in time");
    for (const struct hf__waiter *q = n->queue.head; q && is_taken(n);
         q = q->next)
        ((struct thread *)(uintptr_t)q)->excused = true;
}

void sulk_judge(struct thread *t, int result)
{
    struct world *w = t->process->world;
    bool asked_in_vain =
        w->sulk.ops & 1u << HF__ATTEMPT && t->called_at >= w->sulk.since;

    if (!w->cfg.sulks)
        return;
    w->tally.refused += result == HF_EAUTH;
    if (result == HF_EBACKEND)
        world_fail(w, "REFUSAL", "a refusal was taken for silence");
    if (result == HF_EAUTH && !w->sulk.ops && t->called_at > w->sulk.since)
        world_fail(w, "REFUSAL", "a later call got an old refusal");
    if (asked_in_vain && !t->excused && !is_taken(t->line) &&
        (result == HF_EBUSY || result == HF_ETIMEDOUT))
        world_fail(w, "REFUSAL", "a refused acquire returned busy");
}

void sulk_left(struct name *n, const struct message *m)
{
    const struct hf__lease *l = &n->queue.lease;

    if (n->process->world->cfg.sulks && m->untouched &&
        l->known == HF__KNOWN_NOT && l->hold_id == m->hold_id &&
        l->state != HF__IDLE)
        world_fail(n->process->world, "REFUSAL", "a refusal left a let_go");
}
