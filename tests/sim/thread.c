/*
 * A thread of a simulated program: acquires a lock in any of the possible ways,
 * uses the resource that the lock guards, and releases. It does for the
 * simulation what src/api/acquire.c does for the library.
 */
#include "sim.h"

/* HF__GRACE_MS: the longest time that a timed wait waits for a first answer. */
#define GRACE (800 * MS)

static int kind_of(const struct thread *t)
{
    return t->process->world->cfg.kind[t->lock];
}

static uint64_t owner_id(const struct thread *t)
{
    return t->index + 1u;
}

static void tell(struct thread *t, struct history_event e)
{
    e.lock = t->lock;
    e.owner = t->owner;
    e.process = t->process->serial;
    note(t->process->world, e);
}

static void step_after(struct thread *t, int64_t after)
{
    at_process(t->process, t->process->world->now + after, EV_THREAD, t->index,
               t->generation);
}

static void idle(struct thread *t)
{
    struct world *w = t->process->world;

    t->phase = T_IDLE;
    t->depth = 0;
    t->lost = t->forgotten = false;
    t->generation++;
    step_after(t, rng_skewed(&w->rng, 1000, w->cfg.think_hi));
}

void thread_start(struct thread *t)
{
    idle(t);
}

static void touch(struct thread *t)
{
    struct resource *r = &t->process->world->resource[t->lock];
    bool refused = t->token < r->token;

    if (!refused)
        r->token = t->token;
    t->value = r->value;
    tell(t, (struct history_event){.kind = HISTORY_READ,
                                   .token = t->token,
                                   .value = t->value,
                                   .result = refused});
}

static void count_kind(const struct thread *t)
{
    struct tally *y = &t->process->world->tally;

    y->permits += kind_of(t) == HF_SEMAPHORE;
    y->shared += t->line->queue.shared;
    y->joined += t->line->queue.shared && t->line->queue.count > 1;
}

static void let_through(struct thread *t)
{
    struct world *w = t->process->world;

    if (!server_was_open(w, t->lock, t->called_at))
        world_fail(w, "CLAIM", "a closed latch let a waiter through");
    w->tally.grants++;
    w->tally.through++;
    tell(t, (struct history_event){.kind = HISTORY_RETURN,
                                   .result = HISTORY_THROUGH});
    idle(t);
}

static void returned(struct thread *t, int result)
{
    struct world *w = t->process->world;
    struct name *n = t->line;
    struct history_event e = {.kind = HISTORY_RETURN, .result = result};

    sulk_judge(t, result);
    t->generation++;
    process_rest(n);
    if (result == HF__GRANTED && kind_of(t) == HF_LATCH) {
        let_through(t);
        return;
    }
    if (result != HF__GRANTED) {
        tell(t, e);
        if (t->depth) /* a reentry: the old hold continues, or is lost */
            t->phase = T_HOLDING;
        else
            idle(t);
        if (t->depth)
            step_after(t, 1000);
        return;
    }
    e.result = 0;
    e.cap = t->cap;
    if (e.cap != HF__NEVER)
        e.cap += w->now;
    t->lost = !process_owns(n, owner_id(t));
    if (!t->lost) {
        t->token = n->queue.lease.token;
        t->told_until = n->queue.lease.deadline;
        e.until = clock_real(&t->process->clock, t->told_until);
    } /* otherwise the hold was lost before the thread woke, and until is 0 */
    e.token = t->token;
    t->forgotten &= t->lost;
    if (t->lost)
        e.result = HF_ELOST;
    tell(t, e);
    t->phase = T_HOLDING;
    if (t->lost || hf__queue_count(&n->queue, owner_id(t)) == 1)
        t->depth = 0; /* the hold is a new one */
    if (t->depth++) {
        w->tally.reentries++;
        step_after(t, rng_skewed(&w->rng, 100, MS));
        return;
    }
    w->tally.grants++;
    count_kind(t);
    t->written = n->queue.shared || kind_of(t) == HF_SEMAPHORE;
    t->hard_cap = HF__NEVER;
    if (t->waiter.max_hold_ms)
        t->hard_cap = w->now + t->waiter.max_hold_ms * MS * 1006 / 1000;
    t->hold_until = w->now + rng_skewed(&w->rng, 1000, w->cfg.hold_hi);
    if (!t->lost)
        touch(t);
    step_after(t, rng_skewed(&w->rng, 100, MS));
}

void thread_wake(struct hf__queue *g, struct hf__waiter *waiter)
{
    struct thread *t = (struct thread *)waiter;
    struct world *w = t->process->world;
    int64_t after;

    (void)g;
    if (waiter->is_async && waiter->state != HF__W_FINISHED)
        return; /* asynchronous waiters do not claim a turn */
    /* A thread mostly wakes at once; occasionally the machine is busy. */
    after = rng_chance(&w->rng, w->cfg.lag)
                ? rng_skewed(&w->rng, 0, w->cfg.lag_hi)
                : rng_skewed(&w->rng, 1000, 200000);
    at_process(t->process, w->now + after, EV_WAKE, t->index, t->generation);
    /* A cancel between the wakeup and the return is the worst case. */
    if (rng_chance(&w->rng, w->cfg.cancels / 2))
        at_process(t->process, w->now + rng_between(&w->rng, 0, after),
                   EV_CANCEL, t->index, t->generation);
}

void thread_woken(struct thread *t)
{
    struct name *n = t->line;

    if (t->phase != T_WAITING)
        return;
    if (t->waiter.state != HF__W_FINISHED)
        hf__queue_claim(&n->queue, &t->waiter, process_now(t->process));
    if (t->waiter.state == HF__W_FINISHED)
        returned(t, t->waiter.result);
    process_run(n);
}

static void leave(struct thread *t, int code)
{
    struct name *n = t->line;
    int rc;

    if (code == HF_EBACKEND && t->waiter.state != HF__W_FINISHED &&
        n->queue.lease.state == HF__WAITING &&
        !hf__lease_unanswered(&n->queue.lease))
        world_fail(t->process->world, "RET", "a try waits in the queue");
    rc = hf__queue_leave(&n->queue, &t->waiter, code, thread_wake);

    returned(t, rc);
    process_run(n);
}

void thread_timeout(struct thread *t)
{
    struct world *w = t->process->world;
    const struct hf__lease *l = &t->line->queue.lease;

    if (t->phase == T_RELEASING)
        thread_released(t, HF_EUNKNOWN);
    else if (t->phase == T_RENEWING)
        thread_renewed(t);
    if (t->phase != T_WAITING)
        return;
    if (hf__lease_unanswered(l) && w->now < t->grace)
        at_process(t->process, t->grace, EV_TIMEOUT, t->index, t->generation);
    else
        leave(t, t->waiter.is_try ? HF_EBACKEND : HF_ETIMEDOUT);
}

void thread_cancel(struct thread *t)
{
    if (t->phase == T_WAITING)
        leave(t, HF_ECANCELED);
}

static uint32_t draw_permits(struct thread *t)
{
    struct world *w = t->process->world;

    if (kind_of(t) != HF_SEMAPHORE)
        return 1;
    return (uint32_t)rng_skewed(&w->rng, 1, w->cfg.whole[t->lock]);
}

static void draw_mode(struct thread *t)
{
    struct world *w = t->process->world;

    t->mode = HF_WRITE;
    if (kind_of(t) == HF_RWLOCK && rng_chance(&w->rng, w->cfg.reads))
        t->mode = HF_READ;
}

/* Draws the options of an acquire. Returns how long it may wait. */
static int64_t draw_wish(struct thread *t)
{
    struct world *w = t->process->world;
    const struct config *c = &w->cfg;
    int64_t ttl = c->ttl_ms * MS;
    struct hf__waiter *q = &t->waiter;

    *q = (struct hf__waiter){.owner = owner_id(t),
                             .lease_ms = c->ttl_ms,
                             .handoff = c->handoff,
                             .permits = draw_permits(t),
                             .reentrant = !rng_chance(&w->rng, 100)};
    t->cap = HF__NEVER;
    q->is_async = rng_chance(&w->rng, c->async);
    if (kind_of(t) != HF_LATCH && rng_chance(&w->rng, c->fixed)) {
        q->fixed = true;
        q->lease_ms =
            (uint32_t)(c->session
                           ? rng_between(&w->rng, c->ttl_ms / 50, 3 * c->ttl_ms)
                           : rng_between(&w->rng, c->ttl_ms / 2, c->ttl_ms));
        t->cap = q->lease_ms * MS * 1006 / 1000;
    }
    if (kind_of(t) != HF_LATCH && rng_chance(&w->rng, c->capped)) {
        q->max_hold_ms = rng_between(&w->rng, 2, c->ttl_ms * 2);
        if (q->max_hold_ms * MS * 1006 / 1000 < t->cap)
            t->cap = q->max_hold_ms * MS * 1006 / 1000;
    }
    if (rng_chance(&w->rng, c->tries)) {
        q->is_try = true;
        return 0;
    }
    return rng_chance(&w->rng, c->timed) ? rng_skewed(&w->rng, MS, 2 * ttl)
                                         : HF__NEVER;
}

/* Does what src/core/line_pick.c does. Returns GRANTED, PENDING or an error. */
static int enter(struct thread *t)
{
    struct process *p = t->process;
    struct lock *k = &p->lock[t->lock];
    struct hf__line_entry *line = k->lines.first;
    int rc = 0;

    if (kind_of(t) != HF_MUTEX)
        rc = hf__line_set_for(&k->lines, &t->waiter, t->mode, process_now(p),
                              &line);
    if (rc)
        return rc;
    t->line = line ? (struct name *)line->queue
                   : process_line(p, t->lock, t->mode == HF_READ);
    if (t->line->queue.shared)
        t->waiter.reader = process_entry(p, t->lock);
    if (t->line->queue.latch)
        hf__lease_bell(&t->line->queue.lease, process_now(p));
    rc = hf__queue_enter(&t->line->queue, &t->waiter, process_now(p));
    if (t->line->queue.head == &t->waiter)
        t->line->asked_at = HF__NEVER; /* this waiter's time limit does not
                                          count earlier lost attempts */
    if (rc == HF__GRANTED && t->line->queue.shared && !t->depth &&
        process_now(p) >= t->line->granted_at + HF__JOIN)
        world_fail(p->world, "JOIN", "a reader joined an old hold");
    return rc;
}

static void call(struct thread *t, int64_t until)
{
    const struct config *c = &t->process->world->cfg;
    uint32_t share = t->mode == HF_READ ? 1 : c->whole[t->lock];

    if (kind_of(t) == HF_SEMAPHORE)
        share = t->waiter.permits;
    t->called_at = t->process->world->now;
    tell(t, (struct history_event){.kind = HISTORY_CALL,
                                   .until = until,
                                   .share = share,
                                   .whole = c->whole[t->lock]});
}

/* Returns how long a wait may last without any answer, as hf__answer_by() in
 * src/api/acquire.h does. */
static int64_t first_answer(int64_t wait, int64_t op_timeout)
{
    return wait && op_timeout > GRACE ? GRACE : op_timeout;
}

static void acquire(struct thread *t)
{
    struct world *w = t->process->world;
    int64_t wait = draw_wish(t), until = HF__NEVER;
    int rc;

    draw_mode(t);
    if (wait != HF__NEVER)
        until = w->now + wait;
    t->grace = w->now + first_answer(wait, w->cfg.op_timeout_ms * MS);
    call(t, wait ? until : t->grace);
    t->phase = T_WAITING;
    t->excused = false;
    t->generation++;
    w->tally.calls++;
    w->called_at = w->now;
    rc = enter(t);
    if (rc != HF__PENDING) {
        process_told(t->line);
        returned(t, rc);
    } else {
        if (until != HF__NEVER)
            at_process(t->process, until, EV_TIMEOUT, t->index, t->generation);
        if (rng_chance(&w->rng, w->cfg.cancels))
            at_process(t->process,
                       w->now + rng_skewed(&w->rng, 0, w->cfg.ttl_ms * MS),
                       EV_CANCEL, t->index, t->generation);
    }
    process_run(t->line);
}

static void write_it(struct thread *t)
{
    struct world *w = t->process->world;
    struct message *m = message_new(t->process, 0, t->lock);
    int64_t after = rng_chance(&w->rng, 20)
                        ? rng_between(&w->rng, MS, 2 * w->cfg.ttl_ms * MS)
                        : rng_skewed(&w->rng, 1000, MS);

    t->written = true;
    t->phase = T_WRITING;
    m->token = t->token;
    m->hold_id = t->value + 1;
    m->epoch = t->owner;
    m->thread = t->index;
    heap_push(
        &w->heap,
        (struct event){.at = w->now + after, .kind = EV_WRITE, .message = m});
}

void thread_wrote(struct thread *t)
{
    if (t->phase != T_WRITING)
        return;
    t->phase = T_HOLDING;
    step_after(t, 1000);
}

/* Sends a renewal for that many ms. Returns the latest time at which the new
 * lease can end. */
static int64_t send_renewal(struct thread *t, uint32_t ms)
{
    struct world *w = t->process->world;
    struct hf__lease *l = &t->line->queue.lease;
    struct message *m = message_new(t->process, HF__RENEW, t->lock);

    m->items = 1;
    m->item[0] = (struct renewal){.hold_id = l->hold_id,
                                  .lease_ms = ms,
                                  .lock = t->lock,
                                  .line = t->line->index,
                                  .reads = t->line->queue.shared};
    hf__lease_renewing(l, ms, process_now(t->process));
    net_send(t->process, m);
    return w->now + SEC + (ms + w->cfg.op_timeout_ms) * MS;
}

/* Renews a hold; occasionally sends two renewals at once, as two threads
 * could. */
static void renew_it(struct thread *t)
{
    struct world *w = t->process->world;
    int64_t cap = 0;

    for (int i = rng_chance(&w->rng, 300) ? 2 : 1; i; i--) {
        int64_t end =
            send_renewal(t, (uint32_t)rng_between(&w->rng, w->cfg.ttl_ms / 3,
                                                  w->cfg.ttl_ms));

        cap = end > cap ? end : cap;
    }
    tell(t, (struct history_event){.kind = HISTORY_RENEW,
                                   .until =
                                       cap < t->hard_cap ? cap : t->hard_cap});
    t->phase = T_RENEWING;
    t->generation++;
    at_process(t->process, w->now + w->cfg.op_timeout_ms * MS, EV_TIMEOUT,
               t->index, t->generation);
    process_run(t->line);
}

void thread_renewed(struct thread *t)
{
    t->phase = T_HOLDING;
    t->generation++;
    step_after(t, 1000);
}

void thread_released(struct thread *t, int result)
{
    struct world *w = t->process->world;

    tell(t, (struct history_event){.kind = HISTORY_RELEASED, .result = result});
    t->generation++;
    if (!t->depth) {
        idle(t);
        return;
    }
    t->phase = T_HOLDING;
    step_after(t, rng_skewed(&w->rng, 100, MS));
}

static void release(struct thread *t)
{
    struct world *w = t->process->world;
    struct hf__line_entry *held =
        hf__line_set_held(&t->process->lock[t->lock].lines, owner_id(t));
    struct name *n = t->line;
    int64_t until = w->now + w->cfg.op_timeout_ms * MS;
    bool was_lost = t->lost;
    int rc;

    if (held != &n->line && !t->forgotten)
        world_fail(w, "OWN", "the owner's line was not found");
    tell(t, (struct history_event){.kind = HISTORY_RELEASE, .until = until});
    t->release_id = n->queue.lease.hold_id;
    rc = hf__queue_release(&n->queue, owner_id(t), process_now(t->process),
                           thread_wake);
    t->depth--;
    t->phase = T_RELEASING;
    t->generation++;
    process_told(n);
    process_rest(n);
    if (rc == HF_ENOTOWNER && !t->forgotten)
        world_fail(w, "OWN", "an owner got ENOTOWNER");
    if (was_lost && (rc == HF__DONE || rc == HF__PENDING))
        world_fail(w, "OWN", "a lost hold was released");
    if (rc == HF__DONE && rng_chance(&w->rng, w->cfg.waited))
        at_process(t->process, until, EV_TIMEOUT, t->index, t->generation);
    else
        thread_released(t, rc < 0 ? rc : 0);
    process_run(n);
}

/* Does what src/api/downgrade.c does, without waiting. */
static void downgrade(struct thread *t)
{
    struct process *p = t->process;
    struct name *from = t->line;
    struct hf__line_entry *line =
        hf__line_set_unused(&p->lock[t->lock].lines, HF_READ);
    struct message *m;

    p->world->tally.downgrades++;
    tell(t, (struct history_event){.kind = HISTORY_DOWNGRADE});
    t->line =
        line ? (struct name *)line->queue : process_line(p, t->lock, true);
    hf__queue_downgrade(&from->queue, &t->line->queue,
                        process_entry(p, t->lock), process_now(p));
    t->line->granted_at = process_now(p);
    m = message_new(p, HF__DOWNGRADE, t->lock);
    m->line = t->line->index;
    m->hold_id = t->line->queue.lease.hold_id;
    net_send(p, m);
    process_run(from);
    process_run(t->line);
    step_after(t, 1000);
}

static bool may_downgrade(struct thread *t)
{
    return kind_of(t) == HF_RWLOCK && !t->line->queue.shared &&
           rng_chance(&t->process->world->rng,
                      t->process->world->cfg.downgrades) &&
           !hf__queue_check(&t->line->queue, owner_id(t),
                            process_now(t->process));
}

static void hold(struct thread *t)
{
    struct world *w = t->process->world;
    struct name *n = t->line;

    if (w->now >= t->hold_until || t->depth > 2) {
        release(t);
        return;
    }
    if (may_downgrade(t)) {
        downgrade(t);
        return;
    }
    if (kind_of(t) != HF_SEMAPHORE && rng_chance(&w->rng, w->cfg.nested)) {
        acquire(t);
        return;
    }
    if (!t->written && !t->lost) {
        write_it(t);
        return;
    }
    if (rng_chance(&w->rng, 100) && n->queue.lease.fixed &&
        !hf__queue_check(&n->queue, owner_id(t), process_now(t->process))) {
        renew_it(t);
        return;
    }
    process_told(n);
    step_after(t, rng_between(&w->rng, 0, t->hold_until - w->now) + 1000);
}

void thread_step(struct thread *t)
{
    struct world *w = t->process->world;

    if (t->phase == T_HOLDING) {
        hold(t);
        return;
    }
    if (t->phase != T_IDLE)
        return;
    if (!w->quota) {
        t->phase = T_DONE;
        return;
    }
    w->quota--;
    t->lock = (uint16_t)rng_between(&w->rng, 0, w->cfg.names - 1);
    t->line = &t->process->line[t->lock];
    acquire(t);
}
