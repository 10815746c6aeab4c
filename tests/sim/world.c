/* A run of the simulation: its events, its faults, and its end. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int64_t clock_read(const struct clock *c, int64_t real)
{
    return c->base + real + real / 1000000 * c->ppm +
           real % 1000000 * c->ppm / 1000000;
}

int64_t clock_real(const struct clock *c, int64_t local)
{
    int64_t real;

    if (local == HF__NEVER)
        return HF__NEVER;
    real = (int64_t)((double)(local - c->base) /
                     (1.0 + (double)c->ppm / 1000000.0)) -
           2;
    while (clock_read(c, real) < local)
        real++;
    return real;
}

void trace(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->verbose)
        return;
    printf("# %12.6f ", (double)w->now / 1e9);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void note(struct world *w, struct history_event e)
{
    char line[240];

    e.at = w->now;
    history_add(&w->history, &e);
    if (w->verbose) {
        history_print(&e, line, sizeof(line));
        printf("# %s\n", line);
    }
}

void note_fault(struct world *w, int64_t until)
{
    note(w, (struct history_event){.kind = HISTORY_FAULT, .until = until});
}

void world_fail(struct world *w, const char *check, const char *text)
{
    if (w->verdict.check)
        return;
    w->verdict.check = check;
    w->verdict.index = w->history.len;
    snprintf(w->verdict.text, sizeof(w->verdict.text), "at %.6f s: %s",
             (double)w->now / 1e9, text);
}

void at_process(struct process *p, int64_t at, int kind, uint32_t a, uint64_t b)
{
    heap_push(&p->world->heap, (struct event){.at = at,
                                              .kind = (uint8_t)kind,
                                              .proc = p->index,
                                              .serial = p->serial,
                                              .a = (uint16_t)a,
                                              .b = b});
}

static void freeze_server(struct world *w)
{
    int64_t until =
        w->now + rng_skewed(&w->rng, MS, 2 * w->cfg.op_timeout_ms * MS);

    if (until < w->server_frozen_until)
        return;
    trace(w, "the server is stopped");
    w->tally.freezes++;
    w->server_frozen_until = until;
    heap_push(&w->heap, (struct event){.at = until, .kind = EV_THAW});
    /* Requests of dead processes are executed only when the server continues,
     * and the leases that they take begin then. */
    note_fault(w, until + w->rules.ttl_ns);
}

static void sicken_server(struct world *w)
{
    int64_t until = w->now + rng_skewed(&w->rng, MS, SEC);

    trace(w, "the server refuses everything");
    w->tally.ills++;
    w->server_ill_until = until;
    note_fault(w, until + w->rules.ttl_ns);
}

static void begin_cuts(struct world *w)
{
    int64_t until =
        w->now + rng_skewed(&w->rng, MS, 3 * w->cfg.op_timeout_ms * MS);

    trace(w, "each request breaks its connection");
    w->tally.cuts++;
    w->server_cuts_until = until;
    note_fault(w, until + w->rules.ttl_ns);
}

static void restart_server(struct world *w)
{
    trace(w, "the server is killed and started again");
    w->tally.restarts++;
    server_restart(w);
    for (uint16_t i = 0; i < w->cfg.procs; i++)
        if (w->proc[i].alive)
            at_process(&w->proc[i], w->now, EV_RESET, 0, w->proc[i].epoch);
}

static void set_clock(struct process *p)
{
    if (p->world->broken & BREAK_WALL_CLOCK)
        p->clock.base -=
            rng_between(&p->world->rng, 0, p->world->cfg.ttl_ms * MS);
}

static void fault(struct world *w)
{
    const struct config *c = &w->cfg;
    struct process *p = &w->proc[rng_between(&w->rng, 0, c->procs - 1)];
    int64_t die = rng_between(&w->rng, 0, 999);

    heap_push(&w->heap,
              (struct event){
                  .at = w->now + rng_between(&w->rng, 1000, 2 * c->fault_every),
                  .kind = EV_FAULT});
    if (!p->alive || p->stopped_until)
        return;
    set_clock(p);
    if ((die -= c->kill) < 0) {
        w->tally.kills++;
        process_kill(p);
    } else if ((die -= c->stop) < 0) {
        w->tally.stops++;
        process_stop(p, w->now + rng_skewed(&w->rng, MS, 3 * c->ttl_ms * MS));
    } else if ((die -= c->freeze) < 0) {
        freeze_server(w);
    } else if ((die -= c->ill) < 0) {
        sicken_server(w);
    } else if ((die -= c->restart) < 0) {
        restart_server(w);
    } else if (die < c->cut) {
        begin_cuts(w);
    } else if (p->up) {
        net_reset(p);
    }
}

static void resource_write(struct world *w, struct message *m)
{
    struct resource *r = &w->resource[m->lock];
    struct process *p = &w->proc[m->proc];
    bool refused = m->token < r->token;

    if (!refused) {
        r->token = m->token;
        r->value = m->hold_id;
    }
    note(w, (struct history_event){.kind = HISTORY_WRITE,
                                   .lock = m->lock,
                                   .owner = m->epoch,
                                   .process = m->serial,
                                   .token = m->token,
                                   .value = m->hold_id,
                                   .result = refused});
    if (p->alive && p->serial == m->serial)
        at_process(p, w->now + 1000, EV_WRITE, m->thread, 0);
    message_put(w, m);
}

static void process_event(struct process *p, const struct event *e)
{
    struct thread *t = &p->thread[e->a < THREADS_MAX ? e->a : 0];

    if (e->kind <= EV_WAKE && t->generation != e->b)
        return;
    switch (e->kind) {
    case EV_THREAD:
        thread_step(t);
        break;
    case EV_TIMEOUT:
        thread_timeout(t);
        break;
    case EV_CANCEL:
        thread_cancel(t);
        break;
    case EV_WAKE:
        thread_woken(t);
        break;
    case EV_TIMER:
        if (p->line[e->a].timer_at == (int64_t)e->b)
            process_timer(&p->line[e->a]);
        break;
    case EV_BELL:
        process_bell(&p->line[e->a]);
        break;
    case EV_RESET:
        if (p->epoch == e->b && p->up)
            net_reset(p);
        break;
    case EV_UP:
        if (p->epoch == e->b)
            net_up(p);
        break;
    default:
        thread_wrote(t);
    }
}

static void world_event(struct world *w, struct event *e)
{
    struct process *p = &w->proc[e->proc];

    switch (e->kind) {
    case EV_ARRIVE:
        net_arrive(w, e->message);
        break;
    case EV_WRITE:
        resource_write(w, e->message);
        break;
    case EV_CONTINUE:
        if (!p->alive || p->serial != e->b)
            break;
        p->stopped_until = 0;
        p->went_on_at = process_now(p);
        note(w, (struct history_event){.kind = HISTORY_CONTINUED,
                                       .process = p->serial});
        break;
    case EV_SPAWN:
        process_spawn(p);
        break;
    case EV_REAP:
        server_reap(w, (uint32_t)e->b);
        break;
    case EV_LATCH:
        server_latch(w, e->a);
        break;
    case EV_SULK:
        sulk_event(w);
        break;
    case EV_FAULT:
        if (w->quota)
            fault(w);
        break;
    default:
        break;
    }
}

static void event(struct world *w, struct event *e)
{
    struct process *p = &w->proc[e->proc];

    w->moment = w->now == e->at ? w->moment + 1 : 0;
    if (w->moment > 100000)
        world_fail(w, "SPIN", "the clock stands still");
    w->now = e->at;
    w->tally.events++;
    if (e->kind == EV_ARRIVE && w->now < w->server_frozen_until) {
        e->at = w->server_frozen_until;
        heap_push(&w->heap, *e);
    } else if (!e->serial) {
        world_event(w, e);
    } else if (p->alive && p->serial == e->serial && p->stopped_until) {
        e->at = p->stopped_until;
        heap_push(&w->heap, *e);
    } else if (e->kind == EV_ANSWER) {
        net_answer(w, e->message);
    } else if (e->kind == EV_LANDED) {
        process_landed(w, e->message);
    } else if (p->alive && p->serial == e->serial) {
        process_event(p, e);
    }
}

static void left_by(struct process *p, uint16_t lock)
{
    struct lock *k = &p->lock[lock];
    uint64_t n = 0;

    for (uint16_t i = 0; i < p->lines; i++)
        if (p->line[i].lock == lock) {
            process_rest(&p->line[i]);
            n += !hf__queue_idle(&p->line[i].queue);
        }
    n += k->entries;
    for (struct hf__reader *r = k->spare; r; r = r->next)
        n--;
    if (n)
        note(p->world, (struct history_event){.kind = HISTORY_LEFT,
                                              .lock = lock,
                                              .process = p->serial,
                                              .value = n});
}

static void finish(struct world *w)
{
    for (uint16_t i = 0; i < w->cfg.procs; i++)
        for (uint16_t l = 0; l < w->cfg.names; l++)
            if (w->proc[i].alive)
                left_by(&w->proc[i], l);
    server_left(w);
    w->now += 3600 * SEC;
    note(w, (struct history_event){.kind = HISTORY_END});
}

void world_run(struct world *w, uint64_t seed, uint64_t quota)
{
    struct event e;

    w->rng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = w->server_frozen_until = w->server_ill_until = 0;
    w->called_at = w->server_cuts_until = 0;
    w->verdict.check = NULL;
    w->serials = w->owners = 0;
    w->heap.len = 0;
    w->heap.seq = 0;
    history_clear(&w->history);
    w->quota = (uint64_t)rng_between(&w->rng, 20, (int64_t)quota);
    config_draw(&w->cfg, &w->rules, &w->rng, seed);
    w->server_clock.base = 1000 * SEC;
    w->server_clock.ppm =
        rng_between(&w->rng, -w->cfg.drift_ppm, w->cfg.drift_ppm);
    for (uint16_t l = 0; l < NAMES_MAX; l++) {
        w->slot[l] = (struct slot){0};
        w->resource[l] = (struct resource){0};
        w->latch[l] = (struct latch){0};
        if (l >= w->cfg.names || w->cfg.kind[l] != HF_LATCH)
            continue;
        w->latch[l].owner = w->owners++;
        heap_push(&w->heap, (struct event){.kind = EV_LATCH, .a = l});
    }
    for (uint16_t i = 0; i < w->cfg.procs; i++) {
        w->proc[i] = (struct process){.world = w, .index = i};
        w->session[i] = (struct session){0};
        process_spawn(&w->proc[i]);
    }
    sulk_begin(w);
    if (w->cfg.fault_every)
        heap_push(&w->heap,
                  (struct event){.at = w->cfg.fault_every, .kind = EV_FAULT});
    while (!w->verdict.check && heap_pop(&w->heap, &e)) {
        if (e.at > w->called_at + 600 * SEC)
            break; /* the run is not going to end */
        event(w, &e);
    }
    finish(w);
    if (w->verdict.check)
        return;
    history_sort(&w->history);
    history_check(&w->history, &w->rules, &w->verdict);
}

void world_fini(struct world *w)
{
    struct message *m;

    history_fini(&w->history);
    free(w->heap.event);
    while ((m = w->spare)) {
        w->spare = m->next;
        free(m);
    }
}
