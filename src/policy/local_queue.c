#include "policy/local_queue.h"
#include "base/list.h"

void hf__queue_init(struct hf__queue *g, bool fair, bool endless, uint64_t ids)
{
    *g = (struct hf__queue){.fair = fair, .ids = ids};
    hf__lease_init(&g->lease, endless);
}

static void queue_append(struct hf__queue *g, struct hf__waiter *w)
{
    w->state = HF__W_WAITING;
    w->roused = w->known = false;
    w->covered = 0;
    hf__deque_add(g->head, g->tail, w);
}

static void queue_take_out(struct hf__queue *g, struct hf__waiter *w)
{
    hf__deque_remove(g->head, g->tail, w);
    if (!g->head)
        g->lease.wanted = false;
}

/* Adapts the lease to the queue: the lease is wanted while there are waiters,
 * and a hold with neither a waiter nor an owner is let go. */
static void queue_rethink(struct hf__queue *g)
{
    hf__lease_want(&g->lease, g->head != NULL);
    if (!g->head && !g->owner && g->lease.state == HF__HELD)
        hf__lease_drop(&g->lease); /* no waiter took the free turn */
}

/* Gives back the struct hf__reader of w, which was not needed. */
static void queue_return_entry(struct hf__queue *g, struct hf__waiter *w)
{
    if (!w->reader)
        return;
    *w->reader =
        (struct hf__reader){.next = g->left, .thread = w->reader->thread};
    g->left = w->reader;
    w->reader = NULL;
}

static void queue_finish(struct hf__queue *g, struct hf__waiter *w, int result,
                         hf__wake_fn *wake)
{
    queue_take_out(g, w);
    queue_return_entry(g, w);
    if (w->roused)
        g->waking = false;
    w->result = (int16_t)result;
    w->state = HF__W_FINISHED;
    wake(g, w);
}

static void queue_own(struct hf__queue *g, uint64_t owner)
{
    g->owner = owner;
    g->count = 1;
}

static struct hf__lost *queue_find_lost(const struct hf__queue *g,
                                        uint64_t owner)
{
    for (int i = 0; i < HF__LOST_MAX; i++)
        if (g->lost[i].count && g->lost[i].owner == owner)
            return (struct hf__lost *)&g->lost[i];
    return NULL;
}

static struct hf__reader *queue_find_reader(const struct hf__queue *g,
                                            uint64_t owner)
{
    struct hf__reader *r = g->readers;

    while (r && r->owner != owner)
        r = r->next;
    return r;
}

static void queue_lose_owner(struct hf__queue *g, struct hf__loss loss)
{
    int i;

    /* If all records are in use, the oldest one is dropped: its owner will get
     * ENOTOWNER. */
    for (i = 0; i < HF__LOST_MAX - 1 && g->lost[i].count; i++)
        ;
    for (; i > 0; i--)
        g->lost[i] = g->lost[i - 1];
    g->lost[0] = (struct hf__lost){g->owner, loss, g->count};
}

static void queue_lose_readers(struct hf__queue *g, struct hf__loss loss)
{
    g->loss = loss;
    for (struct hf__reader *r = g->readers; r; r = r->next)
        if (!r->lost) {
            r->loss = loss;
            r->lost = true;
        }
}

void hf__queue_lose(struct hf__queue *g, bool gone, enum hf__loss_why why,
                    hf__time now)
{
    hf__ends_verified(queue, g);
    /* If the lease had expired already, that is the reason of the loss, and not
     * `why`: after the deadline the server may have given the lock to another
     * client. */
    struct hf__loss loss = hf__lease_expired(&g->lease, now)
                               ? hf__lease_why(&g->lease, now)
                               : hf__loss(why, now);

    if (gone)
        hf__lease_gone(&g->lease, now);
    else
        hf__lease_drop(&g->lease);
    if (!g->owner)
        return;
    if (!g->shared)
        queue_lose_owner(g, loss);
    else
        queue_lose_readers(g, loss);
    g->owner = 0;
    g->count = 0;
    g->was_lost = true;
}

/* Returns whether the process still has the hold, with or without a local
 * owner. If the deadline has passed, takes the hold from its owner. */
static bool queue_holds(struct hf__queue *g, hf__time now)
{
    if (g->lease.state != HF__HELD || g->lease.drop)
        return false;
    if (!hf__lease_expired(&g->lease, now))
        return true;
    hf__queue_lose(g, false, HF__LOSS_NONE, now);
    return false;
}

void hf__queue_gone(struct hf__queue *g, uint64_t hold_id,
                    enum hf__loss_why why, hf__time now)
{
    hf__ends_verified(queue, g);

    if (g->lease.hold_id == hold_id && queue_holds(g, now))
        hf__queue_lose(g, true, why, now);
}

struct hf__loss hf__queue_last_loss(const struct hf__queue *g)
{
    return g->shared ? g->loss : g->lost[0].loss;
}

struct hf__loss hf__queue_loss(const struct hf__queue *g, uint64_t owner)
{
    const struct hf__reader *r = g->shared ? queue_find_reader(g, owner) : NULL;

    if (g->shared)
        return r && r->lost ? r->loss : g->loss;
    for (int i = 0; i < HF__LOST_MAX; i++)
        if (g->lost[i].owner == owner)
            return g->lost[i].loss;
    return (struct hf__loss){0};
}

/* Returns whether w may take over the hold of this process: the hold has no
 * owner now and may be handed over at least once more, and w wants no fixed
 * lease. */
static bool queue_turn_free(struct hf__queue *g, const struct hf__waiter *w,
                            hf__time now)
{
    return g->lease.state == HF__HELD && !g->owner && g->turns && !w->fixed &&
           queue_holds(g, now);
}

/* Makes w the hold's next local owner. */
static void queue_turn(struct hf__queue *g, const struct hf__waiter *w,
                       hf__time now)
{
    g->turns--;
    queue_own(g, w->owner);
    hf__lease_cap(&g->lease, now, w->max_hold_ms);
}

static void queue_take_turn(struct hf__queue *g, struct hf__waiter *w,
                            hf__time now)
{
    queue_turn(g, w, now);
    w->result = HF__GRANTED;
    w->state = HF__W_FINISHED;
}

/* Returns whether w cannot share a hold with other waiters, because the hold
 * must end at a time that w has chosen. */
static bool queue_alone(const struct hf__waiter *w)
{
    return w->fixed || w->max_hold_ms;
}

static void queue_add_reader(struct hf__queue *g, struct hf__waiter *w)
{
    struct hf__reader *r = w->reader;

    w->reader = NULL;
    *r = (struct hf__reader){
        .next = g->readers, .thread = w->thread, .owner = w->owner, .count = 1};
    g->readers = r;
    g->owner = HF__READERS;
    g->count++;
}

static void queue_remove_reader(struct hf__queue *g, struct hf__reader *gone)
{
    struct hf__reader **p = &g->readers;

    while (*p != gone)
        p = &(*p)->next;
    *p = gone->next;
    gone->next = g->left;
    g->left = gone;
}

static bool queue_open_to(const struct hf__queue *g, const struct hf__waiter *w,
                          hf__time now)
{
    const struct hf__lease *l = &g->lease;

    return g->shared && g->owner && now < g->join_until && !l->drop &&
           !l->fixed && l->max_until == HF__NEVER && !queue_alone(w) &&
           !hf__lease_expired(l, now);
}

static int queue_enter_shared(struct hf__queue *g, struct hf__waiter *w,
                              hf__time now)
{
    struct hf__reader *r = queue_find_reader(g, w->owner);

    if (r) {
        if (r->lost || !queue_holds(g, now))
            return HF_ELOST;
        if (!w->reentrant || r->count == UINT32_MAX)
            return HF_EDEADLK;
        r->count++;
        return HF__GRANTED;
    }
    if (!queue_open_to(g, w, now))
        return HF__PENDING;
    if (g->join_until == HF__NEVER)
        g->join_until = now + HF__JOIN;
    queue_add_reader(g, w);
    return HF__GRANTED;
}

static int queue_enter_exclusive(struct hf__queue *g, struct hf__waiter *w,
                                 hf__time now)
{
    if (g->owner == w->owner) {
        if (!queue_holds(g, now))
            return HF_ELOST;
        if (!w->reentrant || g->count == UINT32_MAX)
            return HF_EDEADLK;
        g->count++;
        return HF__GRANTED;
    }
    if (queue_find_lost(g, w->owner))
        return HF_ELOST;
    if ((!g->fair || !g->head) && queue_turn_free(g, w, now)) {
        queue_take_turn(g, w, now);
        return HF__GRANTED;
    }
    return HF__PENDING;
}

/* Returns whether the lock is known to be taken: it has an owner here, or the
 * server has answered the current question. Before that answer, and while a
 * let_go is under way, this is unknown, and a try waits for the answer. */
static bool queue_busy(const struct hf__queue *g)
{
    return g->owner || !hf__lease_unanswered(&g->lease);
}

int hf__queue_enter(struct hf__queue *g, struct hf__waiter *w, hf__time now)
{
    hf__ends_verified(queue, g);
    int rc = g->shared ? queue_enter_shared(g, w, now)
                       : queue_enter_exclusive(g, w, now);
    bool dropped;

    if (rc != HF__PENDING) {
        queue_return_entry(g, w);
        return rc;
    }
    if (w->is_try && queue_busy(g)) {
        queue_return_entry(g, w);
        return HF_EBUSY;
    }
    dropped = g->lease.drop;
    queue_append(g, w);
    if (g->head == w) /* an earlier question may be under way */
        hf__lease_listen(&g->lease, now);
    queue_rethink(g);
    /* The question of earlier waiters was being dropped. The new waiter takes
     * it over: repeat its attempt now. */
    if (dropped && !g->lease.drop)
        hf__lease_bell(&g->lease, now);
    if (hf__lease_unanswered(&g->lease))
        hf__lease_hurry(&g->lease, now);
    return HF__PENDING;
}

bool hf__queue_claim(struct hf__queue *g, struct hf__waiter *w, hf__time now)
{
    hf__ends_verified(queue, g);

    if (!w->roused)
        return false;
    w->roused = false;
    g->waking = false;
    if (w->state == HF__W_FINISHED || !queue_turn_free(g, w, now))
        return false;
    queue_take_out(g, w);
    queue_take_turn(g, w, now);
    return true;
}

static void queue_rouse(struct hf__queue *g, hf__wake_fn *wake)
{
    if (!g->head || g->waking)
        return;
    g->waking = true;
    g->head->roused = true;
    wake(g, g->head);
}

/* Passes on a free turn, because the roused waiter has left the queue. The next
 * waiter may have the turn if it is a thread and wants no fixed lease;
 * otherwise the hold is let go. */
static void queue_pass_turn(struct hf__queue *g, hf__wake_fn *wake)
{
    const struct hf__waiter *w = g->head;

    g->waking = false;
    if (g->owner || g->lease.state != HF__HELD || g->lease.drop)
        return;
    if (w && !w->fixed && !w->is_async)
        queue_rouse(g, wake);
    else
        hf__lease_drop(&g->lease);
}

int hf__queue_leave(struct hf__queue *g, struct hf__waiter *w, int code,
                    hf__wake_fn *wake)
{
    hf__ends_verified(queue, g);

    if (w->state == HF__W_FINISHED)
        return w->result;
    queue_take_out(g, w);
    queue_return_entry(g, w);
    w->result = (int16_t)code;
    w->state = HF__W_FINISHED;
    if (w->roused)
        queue_pass_turn(g, wake);
    queue_rethink(g);
    return code;
}

void hf__queue_fail(struct hf__queue *g, int code, hf__wake_fn *wake)
{
    hf__ends_verified(queue, g);

    while (g->head)
        queue_finish(g, g->head, code, wake);
    queue_rethink(g);
}

/* Fails the waiters that a refused request of the kind `what` covers. Waiters
 * that arrived after that request was sent cause a new request. */
static void queue_refuse(struct hf__queue *g, enum hf__todo what, int code,
                         hf__wake_fn *wake)
{
    while (g->head && (g->head->covered & what))
        queue_finish(g, g->head, code, wake);
    queue_rethink(g);
}

bool hf__queue_let_go_answered(struct hf__queue *g, int result, hf__time now,
                               hf__wake_fn *wake)
{
    hf__ends_verified(queue, g);

    if (hf__lease_let_go_answered(&g->lease, result, now))
        return true;
    if (result == HF_EUNKNOWN || (g->lease.state == HF__HELD && !g->lease.drop))
        return false;
    queue_refuse(g, HF__TODO_LET_GO, result, wake);
    if (g->head)
        hf__lease_hurry(&g->lease, now);
    return false;
}

/* If turns are left and the next local waiter can use the hold, hands the hold
 * to that waiter or, in an unfair queue, wakes it to compete for the hold.
 * Returns whether the hold stays. */
static bool queue_hand_over(struct hf__queue *g, hf__time now,
                            hf__wake_fn *wake)
{
    struct hf__waiter *w = g->head;

    if (!w || !g->turns || g->lease.fixed || w->fixed)
        return false;
    if (!g->fair && !w->is_async) {
        queue_rouse(g, wake); /* the waiter competes with newcomers */
        return true;
    }
    queue_turn(g, w, now);
    queue_finish(g, w, HF__GRANTED, wake);
    return true;
}

static int queue_release_shared(struct hf__queue *g, uint64_t owner,
                                hf__time now)
{
    struct hf__reader *r = queue_find_reader(g, owner);

    if (!r)
        return HF_ENOTOWNER;
    if (!r->lost)
        (void)queue_holds(g, now);
    if (--r->count)
        return r->lost ? HF_ELOST : HF__PENDING;
    if (r->lost)
        g->loss = r->loss; /* kept, because the entry is given back */
    queue_remove_reader(g, r);
    if (r->lost)
        return HF_ELOST;
    if (--g->count)
        return HF__PENDING;
    g->owner = 0;
    hf__lease_drop(&g->lease);
    queue_rethink(g);
    return HF__DONE;
}

int hf__queue_release(struct hf__queue *g, uint64_t owner, hf__time now,
                      hf__wake_fn *wake)
{
    hf__ends_verified(queue, g);
    struct hf__lost *lost;

    if (g->shared)
        return queue_release_shared(g, owner, now);
    if (g->owner == owner && queue_holds(g, now)) {
        if (--g->count)
            return HF__PENDING;
        g->owner = 0;
        if (queue_hand_over(g, now, wake))
            return HF__PENDING;
        hf__lease_drop(&g->lease);
        queue_rethink(g);
        return HF__DONE;
    }
    lost = queue_find_lost(g, owner);
    if (!lost)
        return HF_ENOTOWNER;
    lost->count--;
    return HF_ELOST;
}

int hf__queue_check(struct hf__queue *g, uint64_t owner, hf__time now)
{
    if (g->shared) {
        const struct hf__reader *r = queue_find_reader(g, owner);

        if (!r)
            return HF_ENOTOWNER;
        return !r->lost && queue_holds(g, now) ? HF__DONE : HF_ELOST;
    }
    if (g->owner == owner && queue_holds(g, now))
        return HF__DONE;
    return queue_find_lost(g, owner) ? HF_ELOST : HF_ENOTOWNER;
}

uint32_t hf__queue_count(const struct hf__queue *g, uint64_t owner)
{
    const struct hf__reader *r = g->shared ? queue_find_reader(g, owner) : NULL;

    if (g->shared)
        return r ? r->count : 0;
    return g->owner == owner ? g->count : 0;
}

static bool queue_somebody_waits(const struct hf__queue *g)
{
    for (const struct hf__waiter *w = g->head; w; w = w->next)
        if (!w->is_try)
            return true;
    return false;
}

/* Marks all waiters in the queue, because the request that is now being sent
 * covers them. Waiters that are marked already are at the front of the
 * queue. */
static void queue_cover(struct hf__queue *g, enum hf__todo what)
{
    for (struct hf__waiter *w = g->tail; w && !(w->covered & what); w = w->prev)
        w->covered |= what & 3u;
}

enum hf__todo hf__queue_next(struct hf__queue *g, hf__time now,
                             struct hf__waiter **first, bool *may_queue)
{
    hf__ends_verified(queue, g);
    uint64_t last = g->lease.hold_id;
    enum hf__todo todo;

    /* Drop the question if it does not ask for the lease that the first waiter
     * wants: only one of the two leases is fixed, or both are fixed and differ
     * in length. */
    if (g->head &&
        (g->lease.state == HF__ATTEMPTING || g->lease.state == HF__WAITING) &&
        (g->lease.fixed != g->head->fixed ||
         (g->head->fixed && g->lease.lease_ms != g->head->lease_ms)))
        hf__lease_drop(&g->lease);
    todo = hf__lease_next(&g->lease, now, &g->ids);
    if (todo != HF__TODO_NOTHING)
        queue_cover(g, todo);
    if (todo == HF__TODO_ATTEMPT) {
        /* An attempt that is repeated keeps its may_queue. If may_queue were
         * false now, the answer BUSY would end the question, but its place in
         * the server's queue would stay. */
        if (g->lease.hold_id != last)
            g->queueing = queue_somebody_waits(g);
        *first = g->head;
        *may_queue = g->queueing;
        g->lease.fixed = g->head->fixed;
        g->lease.lease_ms = g->head->lease_ms;
    }
    return todo;
}

/* Fails all tries with EBUSY, because the lock is not free. */
static void queue_refuse_tries(struct hf__queue *g, hf__wake_fn *wake)
{
    struct hf__waiter *w, *next;

    for (w = g->head; w; w = next) {
        next = w->next;
        if (w->is_try)
            queue_finish(g, w, HF_EBUSY, wake);
    }
    queue_rethink(g);
}

static void queue_granted_to_all(struct hf__queue *g, hf__time now,
                                 hf__wake_fn *wake)
{
    bool just_one = queue_alone(g->head);

    g->join_until = now + HF__JOIN;
    do {
        queue_add_reader(g, g->head);
        queue_finish(g, g->head, HF__GRANTED, wake);
    } while (g->head && !just_one && !queue_alone(g->head));
}

static void queue_are_known(struct hf__queue *g)
{
    for (struct hf__waiter *w = g->head; w; w = w->next)
        w->known = true;
}

/* Handles the grant of a latch. Nothing is held, so there is nothing to let go,
 * and the answer cannot come too late. All waiters pass if the count is known
 * to be 0, or if no waiter was queued at the server. Otherwise the count may
 * have been 0 only before the last waiter arrived, and the latch may have been
 * set again since. Then only those waiters pass that had arrived before the
 * server said "not yet". */
static void queue_let_through(struct hf__queue *g, bool is_zero, hf__time now,
                              hf__wake_fn *wake)
{
    bool all = is_zero || g->lease.known < HF__KNOWN_QUEUED;
    struct hf__waiter *w, *next;

    hf__lease_gone(&g->lease, now);
    g->lease.drop = false;
    for (w = g->head; w; w = next) {
        next = w->next;
        if (all || w->known)
            queue_finish(g, w, HF__GRANTED, wake);
    }
    queue_rethink(g);
}

static void queue_granted(struct hf__queue *g, hf__time now, hf__wake_fn *wake)
{
    struct hf__waiter *w = g->head;

    if (g->shared) {
        queue_granted_to_all(g, now, wake);
        return;
    }
    g->turns = hf__queue_turns(w) & HF__HANDOFF_MAX;
    queue_own(g, w->owner);
    queue_finish(g, w, HF__GRANTED, wake);
    queue_refuse_tries(g, wake);
}

void hf__queue_answered(struct hf__queue *g, const struct hf__req *req,
                        hf__time now, hf__wake_fn *wake)
{
    hf__ends_verified(queue, g);
    int64_t max_hold_ms = g->head ? g->head->max_hold_ms : 0;
    int rc = hf__lease_answered(&g->lease, req, now, max_hold_ms);

    if (g->latch && g->lease.state == HF__HELD) {
        queue_let_through(g, req->is_zero, now, wake);
    } else if (rc == HF__GRANTED) {
        queue_granted(g, now, wake);
    } else if (rc == HF__BUSY || (req->result == HF__QUEUED &&
                                  req->hold_id == g->lease.hold_id)) {
        if (g->latch)
            queue_are_known(g);
        queue_refuse_tries(g, wake);
    } else if (rc != HF__PENDING) {
        queue_refuse(g, HF__TODO_ATTEMPT, rc, wake);
    }
}

void hf__queue_renewed(struct hf__queue *g, uint64_t hold_id, int result,
                       hf__time sent_at, uint32_t lease_ms, hf__time now)
{
    hf__ends_verified(queue, g);

    if (g->lease.state == HF__HELD && g->lease.hold_id == hold_id &&
        !queue_holds(g, now))
        return;
    if (hf__lease_renewed(&g->lease, hold_id, result, sent_at, lease_ms, now) ==
        HF_ELOST)
        hf__queue_lose(g, true, HF__LOSS_TAKEN, now);
}

void hf__queue_tick(struct hf__queue *g, hf__time now, hf__wake_fn *wake)
{
    hf__ends_verified(queue, g);

    if (g->lease.state == HF__HELD && !g->lease.drop)
        (void)queue_holds(g, now);
    if (hf__queue_silent(g, now))
        hf__queue_fail(g, HF_EBACKEND, wake);
}

bool hf__queue_renewable(const struct hf__queue *g, hf__time now)
{
    const struct hf__lease *l = &g->lease;
    uint32_t term_ms = l->session ? l->session_ms : l->lease_ms;

    if (l->state != HF__HELD || l->drop || l->renewing)
        return false;
    if (l->endless && !l->fixed)
        return true; /* an endless hold is renewed at each check, to find out
                        whether it was broken */
    return l->renew_at != HF__NEVER &&
           now >= l->renew_at - term_ms * HF__MS / 12;
}

bool hf__queue_idle(const struct hf__queue *g)
{
    return g->lease.state == HF__IDLE && !hf__lease_lets_go(&g->lease) &&
           !g->head;
}

bool hf__queue_unused(const struct hf__queue *g)
{
    return hf__queue_idle(g) && hf__queue_owes_nothing(g);
}

bool hf__queue_leaving(const struct hf__queue *g)
{
    return g->lease.state == HF__IDLE && hf__lease_lets_go(&g->lease) &&
           !g->head && hf__queue_owes_nothing(g);
}

bool hf__queue_stuck(const struct hf__queue *g)
{
    return hf__queue_leaving(g) && hf__lease_stuck(&g->lease);
}

bool hf__queue_knows(const struct hf__queue *g, uint64_t owner)
{
    if (g->shared)
        return queue_find_reader(g, owner) != NULL;
    return g->owner == owner || queue_find_lost(g, owner) != NULL;
}

bool hf__queue_forget(struct hf__queue *g, uint64_t owner)
{
    hf__ends_verified(queue, g);
    struct hf__lost *lost = g->shared ? NULL : queue_find_lost(g, owner);
    struct hf__reader *r = g->shared ? queue_find_reader(g, owner) : NULL;

    if (lost)
        lost->count = 0;
    if (r && r->lost)
        queue_remove_reader(g, r);
    return lost || (r && r->lost);
}

void hf__queue_forget_all(struct hf__queue *g)
{
    hf__ends_verified(queue, g);
    struct hf__reader *r, *next;

    for (int i = 0; i < HF__LOST_MAX && !g->shared; i++)
        g->lost[i].count = 0;
    for (r = g->shared ? g->readers : NULL; r; r = next) {
        next = r->next;
        if (r->lost)
            queue_remove_reader(g, r);
    }
}

bool hf__queue_joinable(const struct hf__queue *g, const struct hf__waiter *w,
                        hf__time now)
{
    if (queue_open_to(g, w, now))
        return true;
    /* While an attempt is under way, w can join readers, but not the waiters of
     * a latch: the latch may have been set again after the server gave its
     * answer. */
    return g->head && !w->is_try && !queue_alone(w) && !queue_alone(g->head) &&
           (g->lease.state == HF__WAITING ||
            (g->shared && g->lease.state == HF__ATTEMPTING)) &&
           !g->lease.drop;
}

void hf__queue_downgrade(struct hf__queue *from, struct hf__queue *to,
                         struct hf__reader *r, hf__time now)
{
    hf__ends_verified(queue, to);
    struct hf__waiter w = {.owner = from->owner, .reader = r};

    hf__lease_move(&to->lease, &from->lease, now);
    queue_add_reader(to, &w);
    r->count = from->count;
    to->join_until = now + HF__JOIN;
    from->owner = 0;
    from->count = 0;
    queue_rethink(from);
}

bool hf__queue_quick_unshare(struct hf__queue *g, uint64_t owner)
{
    struct hf__reader *r = g->owner == HF__READERS ? g->readers : NULL;

    if (!r || r->owner != owner || r->count != 1 || r->next)
        return false;
    g->readers = NULL;
    r->next = g->left;
    g->left = r;
    return true;
}

#ifdef HF__ASSERT

static void queue_verify_waiters(const struct hf__queue *g)
{
    const struct hf__waiter *last = NULL;

    for (const struct hf__waiter *w = g->head; w; w = w->next) {
        hf__assert(w->prev == last && w->state == HF__W_WAITING);
        hf__assert(!w->roused || w == g->head);
        last = w;
    }
    hf__assert(g->tail == last);
    hf__assert(!g->waking || (g->head && g->head->roused && !g->fair));
    hf__assert(g->lease.wanted == (g->head != NULL));
}

static void queue_verify_readers(const struct hf__queue *g)
{
    uint32_t holding = 0;

    for (const struct hf__reader *r = g->readers; r; r = r->next) {
        hf__assert(r->count);
        holding += !r->lost;
    }
    /* hf_close() clears the owner, but leaves the readers in the list. */
    hf__assert(!g->owner || g->owner == HF__READERS);
    hf__assert(g->count == (g->owner ? holding : 0));
}

void hf__queue_verify(const struct hf__queue *g)
{
    const struct hf__lease *l = &g->lease;
    bool held = l->state == HF__HELD && !l->drop;
    bool asking = l->state == HF__ATTEMPTING || l->state == HF__WAITING;

    hf__lease_verify(l);
    queue_verify_waiters(g);
    if (g->shared)
        queue_verify_readers(g);
    else
        hf__assert(!g->owner == !g->count);
    hf__assert(!g->latch || (l->state != HF__HELD && !g->owner));
    hf__assert(!g->owner || held);
    hf__assert(!held || g->owner || (g->head && g->head->roused));
    hf__assert(!asking || g->head || l->drop);
}

#endif
