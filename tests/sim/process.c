/*
 * A process: its clock, its queues and the code around them. It does for the
 * simulation what src/core/line.c does for the library.
 */
#include "sim.h"

#include <string.h>

int64_t process_now(const struct process *p)
{
    return clock_read(&p->clock, p->world->now);
}

static void clock_draw(struct world *w, struct clock *c)
{
    c->base = rng_between(&w->rng, SEC, 1000 * SEC);
    c->ppm = rng_between(&w->rng, -w->cfg.drift_ppm, w->cfg.drift_ppm);
}

struct name *process_line(struct process *p, uint16_t lock, bool reads)
{
    struct world *w = p->world;
    struct lock *k = &p->lock[lock];
    struct name *n = &p->line[p->lines];

    /* This margin lets the run end before the array is full. */
    if (p->lines > LINES_MAX - 8)
        world_fail(w, "LEAK", "too many lines");
    *n = (struct name){.process = p,
                       .lock = lock,
                       .index = p->lines++,
                       .timer_at = HF__NEVER,
                       .owed_since = HF__NEVER,
                       .asked_at = HF__NEVER};
    n->line.queue = &n->queue;
    hf__queue_init(&n->queue, w->cfg.fair, w->cfg.endless,
                   (uint64_t)(n->index + 1) << 32);
    n->queue.lease.session = w->cfg.session;
    n->queue.shared = reads;
    n->queue.latch = w->cfg.kind[lock] == HF_LATCH;
    if (k->lines.first)
        hf__line_set_add(&k->lines, &n->line);
    else
        hf__line_set_init(&k->lines, w->cfg.kind[lock], &n->line);
    return n;
}

struct hf__reader *process_entry(struct process *p, uint16_t lock)
{
    struct lock *k = &p->lock[lock];
    struct hf__reader *r = k->spare;

    if (r) {
        k->spare = r->next;
        return r;
    }
    if (k->entries > ENTRIES_MAX - 8)
        world_fail(p->world, "LEAK", "too many entries");
    return &k->entry[k->entries++];
}

void process_rest(struct name *n)
{
    struct lock *k = &n->process->lock[n->lock];
    struct hf__reader *r;

    while (n->queue.shared && (r = n->queue.left)) {
        n->queue.left = r->next;
        r->next = k->spare;
        k->spare = r;
    }
    hf__line_set_rest(&k->lines, &n->line);
}

bool process_owns(const struct name *n, uint64_t owner)
{
    if (!n->queue.shared)
        return n->queue.owner == owner;
    for (const struct hf__reader *r = n->queue.readers; r; r = r->next)
        if (r->owner == owner)
            return !r->lost;
    return false;
}

void process_spawn(struct process *p)
{
    struct world *w = p->world;
    uint16_t index = p->index;

    *p = (struct process){.world = w,
                          .index = index,
                          .serial = ++w->serials,
                          .alive = true,
                          .up = true};
    p->flight_end = &p->flight;
    p->unsent_end = &p->unsent;
    clock_draw(w, &p->clock);
    p->line = w->line[index];
    for (uint16_t l = 0; l < w->cfg.names; l++) {
        p->lock[l].entry = w->entry[index][l];
        process_line(p, l, false);
    }
    for (uint16_t t = 0; t < w->cfg.threads; t++) {
        p->thread[t] =
            (struct thread){.process = p, .index = t, .owner = w->owners++};
        thread_start(&p->thread[t]);
    }
}

void process_kill(struct process *p)
{
    struct world *w = p->world;

    trace(w, "process %u is killed", p->serial);
    note(w,
         (struct history_event){.kind = HISTORY_KILLED, .process = p->serial});
    p->alive = false;
    p->stopped_until = 0;
    net_forget(p);
    if (w->cfg.endless)
        heap_push(&w->heap, (struct event){.at = w->now + 50 * MS,
                                           .kind = EV_REAP,
                                           .b = p->serial});
    heap_push(&w->heap,
              (struct event){.at = w->now + rng_skewed(&w->rng, MS, SEC),
                             .kind = EV_SPAWN,
                             .proc = p->index,
                             .b = p->serial});
}

void process_stop(struct process *p, int64_t until)
{
    struct world *w = p->world;

    trace(w, "process %u is stopped", p->serial);
    note(w,
         (struct history_event){.kind = HISTORY_STOPPED, .process = p->serial});
    p->stopped_until = until + 1; /* later than the event below */
    heap_push(&w->heap, (struct event){.at = until,
                                       .kind = EV_CONTINUE,
                                       .proc = p->index,
                                       .b = p->serial});
}

static void ask(struct name *n, const struct hf__waiter *first, bool may_queue)
{
    struct process *p = n->process;
    struct message *m = message_new(p, HF__ATTEMPT, n->lock);
    uint32_t whole = p->world->cfg.whole[n->lock];

    m->line = n->index;
    m->share = n->queue.shared ? 1 : whole;
    if (p->world->cfg.kind[n->lock] == HF_SEMAPHORE)
        m->share = p->world->broken & BREAK_ASK_FOR_ONE ? 1 : first->permits;
    m->hold_id = n->queue.lease.hold_id;
    m->lease_ms = first->lease_ms;
    m->fixed = first->fixed;
    m->may_queue = may_queue;
    m->round = n->round_of == m->hold_id ? n->round : 0;
    if (n->ask)
        world_fail(p->world, "SIM", "two attempts at a time");
    n->ask = m;
    if (n->asked_at == HF__NEVER)
        n->asked_at = process_now(p);
    hf__lease_attempted(&n->queue.lease, process_now(p),
                        p->world->cfg.op_timeout_ms);
    net_send(p, m);
}

static void let_go(struct name *n)
{
    struct process *p = n->process;
    struct message *m = message_new(p, n->queue.lease.let_go_op, n->lock);

    m->line = n->index;
    m->hold_id = n->queue.lease.let_go_id;
    if (m->op == HF__RELEASE && n->queue.latch)
        world_fail(p->world, "SIM", "a latch was released");
    if (m->op == HF__ABANDON && n->ask && n->ask->hold_id == m->hold_id) {
        n->ask->cancelled = true; /* an abandoned attempt has no result */
        n->ask = NULL;
        n->asked_at = HF__NEVER;
    }
    net_send(p, m);
}

static void set_timer(struct name *n)
{
    struct process *p = n->process;
    hf__time at = hf__lease_timer(&n->queue.lease);
    int64_t real;

    if (at >= n->timer_at)
        return;
    n->timer_at = at;
    real = clock_real(&p->clock, at);
    at_process(p, real > p->world->now ? real : p->world->now, EV_TIMER,
               n->index, (uint64_t)at);
}

static struct thread *owner_of(struct name *n, uint64_t owner)
{
    struct process *p = n->process;

    return owner ? &p->thread[owner - 1] : NULL;
}

/* Notes that a thread has lost its hold. The queue remembers a limited number
 * of owners that lost their hold; beyond that it forgets the oldest. */
static void loses(struct name *n, struct thread *t)
{
    struct process *p = n->process;
    struct thread *oldest = NULL;
    int known = 0;

    t->lost = true;
    t->forgotten = false;
    t->lost_at = p->world->now;
    for (uint16_t i = 0; i < p->world->cfg.threads; i++) {
        struct thread *o = &p->thread[i];

        if (o->line != n || !o->lost || o->forgotten)
            continue;
        known++;
        if (!oldest || o->lost_at < oldest->lost_at)
            oldest = o;
    }
    if (known > HF__LOST_MAX && !n->queue.shared)
        oldest->forgotten = true;
}

static void told_loss(struct name *n, struct thread *t)
{
    loses(n, t);
    note(n->process->world,
         (struct history_event){.kind = HISTORY_LOST,
                                .lock = n->lock,
                                .owner = t->owner,
                                .process = n->process->serial});
}

static void told_losses(struct name *n)
{
    if (!n->queue.was_lost)
        return;
    n->queue.was_lost = false;
    if (!n->queue.shared) {
        told_loss(n, owner_of(n, n->queue.lost[0].owner));
        return;
    }
    for (struct hf__reader *r = n->queue.readers; r; r = r->next)
        if (r->lost && !owner_of(n, r->owner)->lost)
            told_loss(n, owner_of(n, r->owner));
}

static void told_deadline(struct name *n, struct thread *t)
{
    struct process *p = n->process;

    if (n->queue.lease.deadline == t->told_until)
        return;
    t->told_until = n->queue.lease.deadline;
    if (t->phase == T_WAITING)
        return; /* the thread hears of the loss when its call returns */
    note(p->world,
         (struct history_event){.kind = HISTORY_DEADLINE,
                                .lock = n->lock,
                                .owner = t->owner,
                                .process = p->serial,
                                .until = clock_real(&p->clock, t->told_until)});
}

/* Records in the history what holders can know: their deadlines and losses. */
void process_told(struct name *n)
{
    told_losses(n);
    if (!n->queue.owner)
        return;
    if (!n->queue.shared) {
        told_deadline(n, owner_of(n, n->queue.owner));
        return;
    }
    for (struct hf__reader *r = n->queue.readers; r; r = r->next)
        if (!r->lost)
            told_deadline(n, owner_of(n, r->owner));
}

void process_run(struct name *n)
{
    struct hf__waiter *first = NULL;
    bool may_queue = false;
    int spins = 0;

    for (;;) {
        enum hf__todo todo = hf__queue_next(&n->queue, process_now(n->process),
                                            &first, &may_queue);

        if (todo == HF__TODO_NOTHING)
            break;
        if (++spins > 10) {
            world_fail(n->process->world, "SIM", "the queue sends without end");
            break;
        }
        if (todo == HF__TODO_ATTEMPT)
            ask(n, first, may_queue);
        else
            let_go(n);
    }
    if (!n->ask || !n->queue.head)
        n->asked_at = HF__NEVER;
    process_told(n);
    process_rest(n);
    set_timer(n);
    sulk_watch(n);
}

/* Renews all holds that are due soon in as few requests as possible. */
static void renew(struct process *p)
{
    struct message *m = NULL;
    int64_t now = process_now(p);

    for (uint16_t l = 0; l < p->lines; l++) {
        struct name *n = &p->line[l];
        struct hf__lease *lease = &n->queue.lease;

        if (!hf__queue_renewable(&n->queue, now))
            continue;
        if (m && m->items == ITEMS_MAX) {
            net_send(p, m);
            m = NULL;
        }
        if (!m)
            m = message_new(p, HF__RENEW, n->lock);
        m->item[m->items++] =
            (struct renewal){.hold_id = lease->hold_id,
                             .lease_ms = hf__lease_renew_ms(lease),
                             .lock = n->lock,
                             .line = l,
                             .reads = n->queue.shared};
        hf__lease_renewing(lease, hf__lease_renew_ms(lease), now);
        process_told(n);
        set_timer(n);
    }
    if (m)
        net_send(p, m);
}

void process_timer(struct name *n)
{
    int64_t now = process_now(n->process);

    n->timer_at = HF__NEVER;
    hf__queue_tick(&n->queue, now, thread_wake);
    process_run(n);
    if (hf__queue_renewable(&n->queue, now))
        renew(n->process);
}

void process_bell(struct name *n)
{
    hf__lease_bell(&n->queue.lease, process_now(n->process));
    process_run(n);
}

/* Called when the answer to an attempt was lost: fails the run if a waiter
 * still waits although no attempt has been answered for longer than op_timeout.
 * There are two exceptions: a process that was stopped in the meantime reports
 * the timeout when it runs again, and an attempt with other terms that follows
 * this one has its own time limit. */
static void lost_again(struct name *n, int64_t now)
{
    struct process *p = n->process;

    if (n->queue.head && !n->queue.lease.drop && n->asked_at > p->went_on_at &&
        now - n->asked_at > p->world->cfg.op_timeout_ms * MS)
        world_fail(p->world, "RET", "an unanswered wait goes on");
}

static void attempt_answered(struct name *n, const struct message *m)
{
    struct process *p = n->process;
    int64_t now = process_now(p);
    struct hf__req req = {.hold_id = m->hold_id,
                          .sent_at = m->sent_at,
                          .session_ms = p->world->cfg.ttl_ms,
                          .result = (int16_t)m->result,
                          .op = HF__ATTEMPT,
                          .untouched = m->untouched,
                          .is_zero = m->is_zero};

    n->ask = NULL;
    if (m->result == HF_EUNKNOWN)
        lost_again(n, now);
    else
        n->asked_at = HF__NEVER;
    if (m->result == HF__QUEUED) {
        n->round = m->round;
        n->round_of = m->hold_id;
    }
    if (m->result == HF__GRANTED)
        n->granted_at = now;
    if (m->result == HF__GRANTED)
        req.token = m->token;
    else
        req.poll_at =
            p->world->broken & BREAK_NO_BELL ? HF__NEVER : now + m->look_in;
    hf__queue_answered(&n->queue, &req, now, thread_wake);
    sulk_left(n, m);
    if (m->result == HF__GRANTED && m->is_zero && n->queue.head)
        world_fail(p->world, "CLAIM", "an open latch kept a waiter");
    if (n->queue.owner && hf__lease_expired(&n->queue.lease, now) &&
        m->result == HF__GRANTED)
        world_fail(p->world, "CLAIM", "a grant had expired on arrival");
}

static void let_go_answered(struct name *n, const struct message *m)
{
    struct hf__lease *l = &n->queue.lease;
    uint64_t id = l->let_go_id;
    struct process *p = n->process;

    if (!hf__queue_let_go_answered(&n->queue, m->result, process_now(p),
                                   thread_wake))
        return;
    for (uint16_t i = 0; i < p->world->cfg.threads; i++) {
        struct thread *t = &p->thread[i];

        if (t->phase == T_RELEASING && t->line == n && t->release_id == id)
            thread_released(t, 0);
    }
}

static void renewals_answered(struct process *p, const struct message *m)
{
    for (uint32_t j = 0; j < m->items; j++) {
        const struct renewal *r = &m->item[j];
        struct name *n = &p->line[r->line];

        hf__queue_renewed(&n->queue, r->hold_id, r->result, m->sent_at,
                          r->lease_ms, process_now(p));
        if (r->result == HF_ENOTOWNER && n->queue.lease.state == HF__HELD &&
            n->queue.lease.hold_id == r->hold_id && !n->queue.lease.drop)
            world_fail(p->world, "CLAIM", "the server reported it as gone");
        for (uint16_t i = 0; i < p->world->cfg.threads; i++)
            if (p->thread[i].phase == T_RENEWING && p->thread[i].line == n)
                thread_renewed(&p->thread[i]);
        process_run(n);
    }
}

/* Called when a thread has read the answer to a batch of renewals. Other
 * threads may deliver later answers before this thread delivers that answer to
 * the names. */
static void renewals_read(struct process *p, struct message *m)
{
    struct world *w = p->world;

    if (!rng_chance(&w->rng, w->cfg.lag)) {
        renewals_answered(p, m);
        return;
    }
    m->refs++;
    heap_push(&w->heap, (struct event){.at = w->now + rng_skewed(&w->rng, 0,
                                                                 w->cfg.lag_hi),
                                       .kind = EV_LANDED,
                                       .message = m,
                                       .proc = p->index,
                                       .serial = p->serial});
}

void process_landed(struct world *w, struct message *m)
{
    struct process *p = &w->proc[m->proc];

    if (p->alive && p->serial == m->serial)
        renewals_answered(p, m);
    message_put(w, m);
}

/* The hold is lost if the server does not know it; after any other answer it is
 * a read hold. A renewal reports the downgrade too; if no renewal will follow,
 * the downgrade is sent again. */
static void downgrade_answered(struct name *n, const struct message *m)
{
    struct process *p = n->process;
    struct hf__lease *l = &n->queue.lease;
    struct message *again;

    if (l->hold_id != m->hold_id || !n->queue.owner || m->result == HF__DONE)
        return;
    if (m->result == HF_ENOTOWNER) {
        hf__queue_lose(&n->queue, true, HF__LOSS_TAKEN, process_now(p));
        return;
    }
    if (l->renew_at != HF__NEVER)
        return;
    again = message_new(p, HF__DOWNGRADE, n->lock);
    again->line = n->index;
    again->hold_id = m->hold_id;
    net_send(p, again);
}

/* Called when the session of the process has ended: all its holds are lost, and
 * its waiters send new attempts. */
void process_session_over(struct process *p)
{
    int64_t now = process_now(p);

    trace(p->world, "process %u: its session has ended", p->serial);
    for (uint16_t l = 0; l < p->lines; l++) {
        struct name *n = &p->line[l];

        hf__queue_renewed(&n->queue, n->queue.lease.hold_id, HF_ENOTOWNER, now,
                          0, now);
        process_run(n);
    }
    net_session_over(p);
    for (uint16_t l = 0; l < p->lines; l++)
        process_bell(&p->line[l]);
}

void process_deliver(struct process *p, struct message *m)
{
    struct name *n = &p->line[m->line];

    if (m->cancelled)
        return;
    trace(p->world, "process %u: answer %d to op %d of %llu", p->serial,
          m->result, m->op, (unsigned long long)m->hold_id);
    if (m->result == SESSION_OVER) {
        if (m->session == p->session)
            process_session_over(p);
        m->result = HF_EUNKNOWN;
    }
    if (m->op == HF__RENEW) {
        renewals_read(p, m);
        return;
    }
    if (m->op == HF__ATTEMPT)
        attempt_answered(n, m);
    else if (m->op == HF__DOWNGRADE)
        downgrade_answered(n, m);
    else
        let_go_answered(n, m);
    process_run(n);
}
