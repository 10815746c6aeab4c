/* Random choices, all drawn from the seed, and the profiles of runs. */
#include "sim.h"

uint64_t rng_next(struct rng *r) /* splitmix64 */
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t rng_between(struct rng *r, int64_t lo, int64_t hi)
{
    return hi <= lo ? lo
                    : lo + (int64_t)(rng_next(r) % (uint64_t)(hi - lo + 1));
}

bool rng_chance(struct rng *r, uint32_t per_mille)
{
    return per_mille && rng_next(r) % 1000 < per_mille;
}

int64_t rng_skewed(struct rng *r, int64_t lo, int64_t hi)
{
    return rng_between(r, lo, lo + ((hi - lo) >> rng_between(r, 0, 6)));
}

static const struct config calm = {
    .profile = "calm",
    .delay_lo = 50000,
    .delay_hi = 2 * MS,
    .think_hi = 20 * MS,
    .hold_hi = 20 * MS,
    .lag_hi = 50 * MS,
    .wake = LOOK,
    .spike = 2,
    .lag = 50,
    .deaf = 20,
    .fixed = 100,
    .capped = 50,
    .tries = 100,
    .timed = 300,
    .cancels = 50,
    .async = 200,
    .nested = 100,
    .waited = 500,
    .reads = 700,
    .downgrades = 150,
    .drift_ppm = 5000,
};

static void crowded(struct config *c)
{
    c->profile = "crowded";
    c->think_hi = MS;
    c->names = 1;
    c->threads = THREADS_MAX;
}

static void torn(struct config *c)
{
    c->profile = "torn";
    c->reset = 30;
    c->twice = 30;
    c->ill = 300;
    c->refuse = 10;
    c->fault_every = SEC;
}

static void late(struct config *c)
{
    c->profile = "late";
    c->reset = 30;
    c->twice = 50;
    c->late = 400;
    c->ill = 300;
    c->refuse = 10;
    c->fault_every = SEC;
    if (c->ttl_ms > 2000)
        c->hold_hi = c->ttl_ms * MS;
    c->renew_sets = false;
}

static void deadly(struct config *c)
{
    c->profile = "deadly";
    c->fault_every = c->ttl_ms * MS;
    c->kill = 400;
    c->stop = 400;
    c->freeze = 100;
    c->reset = 5;
    c->hold_hi = c->ttl_ms * MS * 2;
}

static void slow(struct config *c)
{
    c->profile = "slow";
    c->unhurried = true;
    c->ttl_ms = 200;
    c->op_timeout_ms = 500;
    c->delay_hi = 150 * MS;
    c->hold_hi = 500 * MS;
    c->fault_every = 5 * SEC;
    c->reset = 10;
}

static void forgetful(struct config *c)
{
    c->profile = "forgetful";
    c->lossy = true;
    c->unhurried = true;
    c->fault_every = SEC;
    c->restart = 500;
    c->hold_hi = c->ttl_ms * MS;
}

static void endless(struct config *c)
{
    c->profile = "endless";
    c->endless = true;
    c->fault_every = SEC;
    c->kill = 300;
    c->stop = 300;
    c->ill = 100;
    c->reset = 10;
    c->hold_hi = SEC;
}

static void session(struct config *c)
{
    c->profile = "session";
    c->session = true;
    c->fault_every = 6 * SEC;
    c->kill = 150;
    c->stop = 300;
    c->freeze = 100;
    c->ill = 100;
    c->reset = 10;
    c->late = 400;
    c->refuse = 60;
    c->twice = 30;
    c->fixed = 300;
    c->capped = 100;
    c->hold_hi = 3 * c->ttl_ms * MS;
}

static void longheld(struct config *c)
{
    c->profile = "longheld";
    c->hold_hi = 3 * c->ttl_ms * MS;
    c->fixed = 300;
    c->capped = 200;
    c->reset = 20;
    c->fault_every = 2 * SEC;
}

/* Threads pause for a long time, up to 60 s, before they acquire the lock
 * again, so a line that becomes unused stays unused for a while. */
static void sparse(struct config *c)
{
    c->profile = "sparse";
    c->ttl_ms = c->ttl_ms < 3000 ? 3000 : c->ttl_ms;
    c->think_hi = 60 * SEC;
    c->fixed = 400;
    c->timed = 600;
    c->cancels = 500;
    c->fair = c->hands_over;
    c->threads = THREADS_MAX;
    c->names = 1;
    c->handoff = 3;
    c->hold_hi = 10 * SEC;
    c->lag = 500;
    c->lag_hi = SEC / 2;
}

/* The server often refuses, and clients often cancel. */
static void grumpy(struct config *c)
{
    c->profile = "grumpy";
    c->ttl_ms = c->ttl_ms < 3000 ? 3000 : c->ttl_ms;
    c->delay_hi = 10 * MS;
    c->refuse = 100;
    c->reset = 5;
    c->fixed = 500;
    c->timed = 800;
    c->cancels = 300;
    c->fair = c->hands_over = false;
}

/* No faults, so no waiter depends on polling. */
static void prompt(struct config *c)
{
    c->profile = "prompt";
    c->spike = 0;
    c->deaf = 0;
    c->wake = 100 * MS;
}

/* Many readers, and writers that downgrade. If no reply confirms a downgrade, a
 * renewal must report the downgrade, and must be sent long before a renewal
 * would otherwise be due. */
static void downgrading(struct config *c)
{
    c->profile = "downgrading";
    c->ttl_ms = 30000;
    c->names = 1;
    c->kind[0] = HF_RWLOCK;
    c->whole[0] = HISTORY_MANY;
    c->reads = 900;
    c->downgrades = 700;
    c->nested = c->fixed = c->capped = c->tries = 20;
    c->hold_hi = 10 * SEC;
    c->reset = 10;
    c->refuse = 100;
    c->twice = 30;
}

/* Readers and permit holders without pauses. */
static void shared(struct config *c)
{
    c->profile = "shared";
    c->kind[0] = HF_RWLOCK;
    c->whole[0] = HISTORY_MANY;
    c->names = 1;
    c->threads = THREADS_MAX;
    c->think_hi = 5 * MS;
    c->reset = 10;
    c->kill = 300;
    c->fault_every = 3 * SEC;
}

/* The only faults are refusals by the server: see refusals.c. */
static void sulking(struct config *c)
{
    c->profile = "sulking";
    c->sulks = true;
    c->spike = 0;
    c->tries = 400;
    c->fixed = 300;
    c->cancels = 100;
    c->think_hi = 50 * MS;
    c->op_timeout_ms = 3000;
    c->session = c->procs % 2;
}

/* For a while the server breaks the connection of every request that it
 * executes. */
static void cutting(struct config *c)
{
    c->profile = "cutting";
    c->fault_every = 3 * SEC;
    c->cut = 800;
    c->timed = 100;
    c->session = c->procs % 2;
    c->hold_hi = SEC;
}

static void (*const profiles[])(struct config *) = {
    crowded, torn,        late,    deadly,   slow,   forgetful,
    endless, session,     sulking, longheld, sparse, prompt,
    grumpy,  downgrading, shared,  cutting,  NULL};

/* In half of the runs, on average, all locks are mutexes. */
static void draw_kinds(struct config *c, struct rng *r)
{
    static const uint8_t kinds[] = {HF_RWLOCK, HF_RWLOCK, HF_SEMAPHORE,
                                    HF_LATCH, HF_MUTEX};
    bool mixed = rng_chance(r, 500);

    for (uint16_t l = 0; l < NAMES_MAX; l++) {
        c->kind[l] = mixed ? kinds[rng_between(r, 0, 4)] : HF_MUTEX;
        c->whole[l] = 1;
        if (c->kind[l] == HF_RWLOCK)
            c->whole[l] = HISTORY_MANY;
        else if (c->kind[l] == HF_SEMAPHORE)
            c->whole[l] = (uint32_t)rng_between(r, 2, 6);
    }
}

void config_draw(struct config *c, struct history_rules *rules, struct rng *r,
                 uint64_t seed)
{
    static const uint32_t ttls[] = {200, 1000, 3000, 10000};
    static const uint32_t handoffs[] = {0, 0, 1, 3, 20};
    size_t n = sizeof(profiles) / sizeof(*profiles);
    int64_t place;

    *c = calm;
    c->procs = (uint16_t)rng_between(r, 2, PROCS_MAX);
    c->threads = (uint16_t)rng_between(r, 1, THREADS_MAX);
    c->names = (uint16_t)rng_between(r, 1, NAMES_MAX);
    c->ttl_ms = ttls[rng_between(r, 0, 3)];
    c->op_timeout_ms = rng_chance(r, 500) ? 500 : 3000;
    c->handoff = handoffs[rng_between(r, 0, 4)];
    c->fair = rng_chance(r, 500);
    c->hands_over = c->fair && rng_chance(r, 500);
    c->renew_sets = rng_chance(r, 500);
    draw_kinds(c, r);
    if (profiles[seed % n])
        profiles[seed % n](c);
    place = c->ttl_ms * MS > LOOK ? c->ttl_ms * MS : LOOK;
    *rules = (struct history_rules){
        /* Where leases are endless, waiters are notified of deaths. Such a
         * notification can get lost; the waiter then polls after LOOK. */
        .ttl_ns = c->endless ? LOOK : place + SEC,
        .tick_ns = 100 * MS,
        .wake_ns = c->wake,
        .grace_ns = (c->wake == LOOK ? 300 * MS : 0) + c->lag_hi,
        .turns = c->handoff,
        .lossy = c->lossy,
        .unhurried = c->unhurried,
        .stop_keeps = c->endless,
    };
}
