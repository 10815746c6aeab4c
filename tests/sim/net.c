/*
 * The network: one connection per process, which delivers in order both ways.
 * The network delays messages, breaks connections, and delivers requests to the
 * server late or twice.
 *
 * When a connection breaks, every unanswered request on it is reported as
 * UNKNOWN, in order. Of the requests that had not reached the server, the first
 * few may still reach it, possibly so late that the server has long executed
 * newer requests of the same process.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct message *message_new(struct process *p, int op, uint16_t lock)
{
    struct world *w = p->world;
    struct message *m = w->spare;

    if (m)
        w->spare = m->next;
    else
        m = malloc(sizeof(*m));
    if (!m)
        abort();
    memset(m, 0, offsetof(struct message, item));
    m->refs = 1;
    m->serial = p->serial;
    m->proc = p->index;
    m->lock = lock;
    m->op = (uint8_t)op;
    return m;
}

void message_put(struct world *w, struct message *m)
{
    if (--m->refs)
        return;
    m->next = w->spare;
    w->spare = m;
}

int64_t net_delay(struct world *w)
{
    if (rng_chance(&w->rng, w->cfg.spike))
        return rng_between(&w->rng, w->cfg.delay_hi, 20 * w->cfg.delay_hi);
    return rng_skewed(&w->rng, w->cfg.delay_lo, w->cfg.delay_hi);
}

static void append(struct message ***end, struct message *m)
{
    m->next = NULL;
    **end = m;
    *end = &m->next;
}

static void arrive_at(struct world *w, struct message *m, int64_t at)
{
    m->refs++;
    heap_push(&w->heap,
              (struct event){.at = at, .kind = EV_ARRIVE, .message = m});
}

void net_send(struct process *p, struct message *m)
{
    struct world *w = p->world;
    int64_t at;

    if (!p->up) {
        append(&p->unsent_end, m);
        return;
    }
    m->sent_at = process_now(p);
    m->epoch = p->epoch;
    m->session = p->session;
    append(&p->flight_end, m);
    at = w->now + net_delay(w);
    if (at < p->last_arrival)
        at = p->last_arrival;
    p->last_arrival = at;
    arrive_at(w, m, at);
}

static bool is_current(const struct world *w, const struct message *m)
{
    const struct process *p = &w->proc[m->proc];

    return p->alive && p->serial == m->serial && p->epoch == m->epoch;
}

/* Sends a copy of the request to the server; the answer to the copy is
 * dropped. */
static void copy_of(struct world *w, const struct message *m, int64_t after,
                    bool late)
{
    struct message *c = message_new(&w->proc[m->proc], m->op, m->lock);

    *c = *m;
    c->refs = 0;
    c->copy = true;
    c->late = late;
    c->dropped = false;
    arrive_at(w, c, w->now + after);
}

/* Draws whether a copy of the request arrives late. With sessions none does:
 * there a request can be late only if its connection has broken (see
 * scatter()). If a renewal can shorten a lease, no renewal arrives late either,
 * because a late renewal could end a hold before the client's deadline. */
static bool may_be_late(struct world *w, const struct message *m)
{
    return !w->cfg.session && rng_chance(&w->rng, w->cfg.late) &&
           (m->op != HF__RENEW || !w->cfg.renew_sets);
}

static void execute_again(struct world *w, const struct message *m)
{
    struct message copy = *m;

    w->tally.copies++;
    if (may_be_late(w, m)) {
        copy_of(w, m, rng_between(&w->rng, MS, w->cfg.ttl_ms * MS), true);
        w->tally.lates++;
        return;
    }
    copy.copy = true;
    server_execute(w, &copy, false);
}

void net_arrive(struct world *w, struct message *m)
{
    struct process *p = &w->proc[m->proc];
    int64_t at;

    /* Where the server notices deaths at once, it drops requests of dead
     * processes. */
    if (m->dropped || (w->cfg.endless && p->serial != m->serial)) {
        message_put(w, m);
        return;
    }
    m->executed = true;
    server_execute(w, m, m->late);
    if (!is_current(w, m) || m->copy) {
        message_put(w, m);
        return;
    }
    /* A request whose refusal promised that nothing was done must not be
     * executed later. */
    if (!m->untouched && rng_chance(&w->rng, w->cfg.twice))
        execute_again(w, m);
    if (w->now < w->server_cuts_until)
        at_process(p, w->now, EV_RESET, 0, p->epoch);
    else if (rng_chance(&w->rng, w->cfg.reset))
        at_process(p, w->now + net_delay(w) / 2, EV_RESET, 0, p->epoch);
    at = w->now + net_delay(w);
    if (at < p->last_answer)
        at = p->last_answer;
    p->last_answer = at;
    heap_push(&w->heap, (struct event){.at = at,
                                       .kind = EV_ANSWER,
                                       .message = m,
                                       .proc = p->index,
                                       .serial = p->serial});
}

static struct message *pop(struct process *p)
{
    struct message *m = p->flight;

    p->flight = m->next;
    if (!p->flight)
        p->flight_end = &p->flight;
    return m;
}

void net_answer(struct world *w, struct message *m)
{
    struct process *p = &w->proc[m->proc];

    if (is_current(w, m)) {
        /* Answers come in order: all earlier requests have been answered. */
        struct message *head = pop(p);

        if (head != m)
            world_fail(w, "SIM", "answers out of order");
        process_deliver(p, m);
        message_put(w, m);
    }
    message_put(w, m); /* the reference of the event */
}

/* Decides what becomes of the unanswered requests of a broken connection: of
 * those that were not executed yet, the first few are executed, at once or
 * late, and the rest never. */
static void scatter(struct world *w, struct message *flight)
{
    int64_t after = rng_between(&w->rng, 0, w->cfg.ttl_ms * MS);
    bool late = rng_chance(&w->rng, w->cfg.late);
    bool lost = rng_chance(&w->rng, 300);

    for (struct message *m = flight; m; m = m->next) {
        if (m->executed)
            continue;
        m->dropped = true;
        lost = lost || rng_chance(&w->rng, 300) ||
               (late && m->op == HF__RENEW && w->cfg.renew_sets);
        if (lost)
            continue;
        copy_of(w, m, late ? after : 0, late);
        w->tally.lates += late;
    }
}

void net_reset(struct process *p)
{
    struct world *w = p->world;
    struct message *flight = p->flight, *m;
    int64_t back = rng_skewed(&w->rng, MS, 200 * MS);

    trace(w, "connection of %u breaks", p->serial);
    w->tally.resets++;
    note_fault(w, w->now + back + LOOK / 4);
    scatter(w, flight);
    p->epoch++;
    p->up = false;
    p->flight = NULL;
    p->flight_end = &p->flight;
    p->last_arrival = p->last_answer = 0;
    at_process(p, w->now + back, EV_UP, 0, p->epoch);
    while ((m = flight)) {
        flight = m->next;
        m->result = HF_EUNKNOWN;
        for (uint32_t i = 0; i < m->items; i++)
            m->item[i].result = HF_EUNKNOWN;
        process_deliver(p, m);
        message_put(w, m);
    }
}

void net_up(struct process *p)
{
    struct message *m = p->unsent, *next;

    p->up = true;
    p->unsent = NULL;
    p->unsent_end = &p->unsent;
    for (; m; m = next) {
        next = m->next;
        net_send(p, m);
    }
}

static void settle(struct process *p, struct message *m)
{
    bool lets_go = m->op == HF__RELEASE || m->op == HF__ABANDON;

    m->result = lets_go                ? HF__DONE
                : m->op == HF__ATTEMPT ? HF_EUNKNOWN
                                       : HF_ENOTOWNER;
    for (uint32_t i = 0; i < m->items; i++)
        m->item[i].result = HF_ENOTOWNER;
    process_deliver(p, m);
    message_put(p->world, m);
}

void net_session_over(struct process *p)
{
    struct message *flight = p->flight, *unsent = p->unsent, *m;

    p->session++;
    p->epoch++;
    p->flight = p->unsent = NULL;
    p->flight_end = &p->flight;
    p->unsent_end = &p->unsent;
    p->last_arrival = p->last_answer = 0;
    scatter(p->world, flight);
    while ((m = flight)) {
        flight = m->next;
        settle(p, m);
    }
    while ((m = unsent)) {
        unsent = m->next;
        settle(p, m);
    }
}

void net_forget(struct process *p)
{
    struct world *w = p->world;
    struct message *m;

    scatter(w, p->flight);
    while ((m = p->flight)) {
        p->flight = m->next;
        message_put(w, m);
    }
    while ((m = p->unsent)) {
        p->unsent = m->next;
        message_put(w, m);
    }
}
