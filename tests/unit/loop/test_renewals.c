/*
 * Renewals are batched: each hold that is due is examined once and is in
 * exactly one batch. The test sets the clock, because with this TTL no renewal
 * is due by the real one.
 */
#include "../cases.h"
#include "base/timer.h"
#include "core/async.h"
#include "core/line_pick.h"
#include "loop/deliver.h"

#include "../server_fixture.h"

#define HOUR (3600 * 1000 * HF__MS)
#define TTL_MS (24 * 3600 * 1000)
#define TERM (8 * HOUR) /* renewals are due after a third of TTL_MS */
#define FULL 256        /* the maximum number of renewals in one batch */
#define NAMES (2 * FULL + 100)

static hf_lock *locks[NAMES];
static unsigned replaces_at; /* value of `looks` at which the first hold is
                                replaced */

static void replace_first(void)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.lease_ms = TTL_MS; /* a fixed lease is never renewed */
    assert_int_equal(hf_lock_release(locks[0], NULL), 0);
    assert_int_equal(hf_lock_acquire(locks[0], &opt, NULL), 0);
}

uint64_t __real_hf__line_timer(struct hf__line *, hf__time now);
uint64_t __wrap_hf__line_timer(struct hf__line *, hf__time now);

static unsigned looks; /* number of names examined because their timers fired */

uint64_t __wrap_hf__line_timer(struct hf__line *n, hf__time now)
{
    uint64_t renew = __real_hf__line_timer(n, now);

    if (++looks == replaces_at)
        replace_first();
    return renew;
}

static unsigned renewed[NAMES]; /* how often each hold was in a batch */
static size_t sizes[16], batches;

static size_t index_of(const struct hf__remote *remote)
{
    size_t i = 0;

    while (i < NAMES && (!locks[i] || &locks[i]->line->remote != remote))
        i++;
    assert_in_range(i, 0, NAMES - 1);
    return i;
}

static void note_batch(const struct hf__batch *batch)
{
    assert_in_range(batches, 0, sizeof(sizes) / sizeof(*sizes) - 1);
    sizes[batches++] = batch->len;
    for (size_t i = 0; i < batch->len; i++)
        renewed[index_of(batch->item[i].remote)]++;
}

static bool no_memory; /* allocations fail; only this thread allocates */

static void *take(void *ctx, size_t size)
{
    return no_memory ? NULL : malloc(size);
}

static void give(void *ctx, void *p)
{
    free(p);
}

/* Opens a client and acquires `len` locks. */
static hf_client *hold(size_t len)
{
    static const hf_hooks hooks = {.alloc = take, .free = give};
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c;

    memset(&server, 0, sizeof(server));
    server.at_once = true;
    server.answer = HF__GRANTED;
    server.in_renew = note_batch;
    opt.hooks = &hooks;
    opt.ttl_ms = TTL_MS;
    assert_int_equal(hf_open("test://", &opt, &c, NULL), 0);
    for (size_t i = 0; i < len; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%zu", i);
        assert_int_equal(
            hf_lock_new(c, name, HF_CSTRING, NULL, &locks[i], NULL), 0);
        assert_int_equal(hf_lock_acquire(locks[i], NULL, NULL), 0);
    }
    return c;
}

/* Postpones the renewals of the holds numbered from `from` to len - 1 by
 * `by`. */
static void delay(hf_client *c, size_t from, size_t len, hf__time by)
{
    for (size_t i = from; i < len; i++) {
        struct hf__line *n = locks[i]->line;

        hf__line_lock(n);
        n->queue.lease.renew_at += by;
        hf__mutex_lock(&c->mu);
        hf__timers_set(&c->timers, &n->timer, n->queue.lease.renew_at);
        hf__mutex_unlock(&c->mu);
        hf__line_unlock(n);
    }
}

static void deliver(hf_client *c, hf__time now)
{
    memset(renewed, 0, sizeof(renewed));
    batches = looks = 0;
    hf__deliver(c, now);
}

static bool nothing_flies(hf_client *c)
{
    bool none;

    hf__mutex_lock(&c->mu);
    none = !c->requests;
    hf__mutex_unlock(&c->mu);
    return none;
}

/* Answers all batches. Either this thread or the helper thread delivers the
 * answers. */
static void answer(hf_client *c, int16_t result)
{
    hf__mutex_lock(&c->mu);
    server.answer = result;
    while (server.asked)
        answer_one();
    server.answer = HF__GRANTED;
    hf__mutex_unlock(&c->mu);
    hf__deliver(c, hf__now());
    assert_true(WAIT_FOR(nothing_flies(c)));
}

static void each_once(size_t from, size_t to)
{
    for (size_t i = 0; i < NAMES; i++)
        assert_int_equal(renewed[i], i >= from && i < to);
}

static void end(hf_client *c, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(hf_lock_release(locks[i], NULL), 0);
        assert_int_equal(hf_lock_free(locks[i]), 0);
        locks[i] = NULL;
    }
    assert_int_equal(hf_close(c), 0);
}

CASE(test_renewals_each_is_in_one_batch)
{
    hf_client *c = hold(NAMES);

    deliver(c, hf__now() + TERM);
    each_once(0, NAMES);
    assert_int_equal(batches, 3);
    assert_int_equal(sizes[0], FULL);
    assert_int_equal(sizes[1], FULL);
    assert_int_equal(sizes[2], NAMES - 2 * FULL);
    assert_int_equal(looks, NAMES);
    deliver(c, hf__now() + TERM); /* all are pending */
    assert_int_equal(batches, 0);
    assert_int_equal(looks, 0);
    answer(c, HF__DONE);
    assert_int_equal(looks, 0);
    deliver(c, hf__now() + TERM); /* all are due again */
    each_once(0, NAMES);
    assert_int_equal(looks, NAMES);
    answer(c, HF__DONE);
    end(c, NAMES);
}

/* A thread finds that a hold is due, and stops before it renews the hold:
 * another thread renews it later. */
CASE(test_renewals_of_a_stopped_thread_are_made_by_another)
{
    hf_client *c = hold(2);
    hf__time due = hf__now() + TERM;

    assert_int_not_equal(__real_hf__line_timer(locks[0]->line, due), 0);
    deliver(c, due);
    each_once(1, 2);
    deliver(c, due + TERM / 2);
    each_once(0, 1);
    answer(c, HF__DONE);
    end(c, 2);
}

/* The driver's round began before the machine was stopped, so the time that the
 * driver passes on is old, and the hold was not due then. The hold is due
 * nevertheless, because the current clock decides. */
CASE(test_renewals_are_due_by_the_present_clock)
{
    hf_client *c = hold(1);
    struct hf__line *n = locks[0]->line;
    hf__time now = hf__now();

    hf__line_lock(n);
    n->queue.lease.renew_at = now;
    hf__line_unlock(n);
    assert_int_not_equal(__real_hf__line_timer(n, now - TERM), 0);
    hf__line_lock(n);
    /* renew_at is now the time when another thread renews the hold, in case
     * this thread stops. */
    assert_true(n->queue.lease.renew_at > now);
    hf__line_unlock(n);
    end(c, 1);
}

/* Holds that are due soon fill the rest of a batch; those already in it are not
 * added again. */
CASE(test_renewals_due_soon_come_along)
{
    enum { DUE = 100, SOON = FULL - DUE, LATER = 20 };
    hf_client *c = hold(DUE + SOON + LATER);

    delay(c, DUE, DUE + SOON + LATER, HOUR);
    delay(c, DUE + SOON, DUE + SOON + LATER, 2 * HOUR);
    deliver(c, hf__now() + TERM);
    assert_int_equal(batches, 1);
    assert_int_equal(sizes[0], FULL);
    each_once(0, FULL);
    assert_int_equal(looks, FULL);
    answer(c, HF__DONE);
    end(c, DUE + SOON + LATER);
}

/* A batch that was not answered, or could not be sent for lack of memory, is
 * sent again after a pause. */
CASE(test_renewals_are_sent_again_after_a_pause)
{
    enum { LEN = 10 };
    hf_client *c = hold(LEN);
    hf__time now = hf__now() + TERM;

    no_memory = true;
    deliver(c, now);
    no_memory = false;
    assert_int_equal(batches, 0);
    assert_int_equal(looks, LEN);
    deliver(c, now);
    assert_int_equal(looks, 0);
    deliver(c, now + TERM / 3); /* the pause is a tenth of the lease */
    each_once(0, LEN);
    assert_int_equal(looks, LEN);
    answer(c, HF_EUNKNOWN);
    deliver(c, now + 2 * HOUR);
    each_once(0, LEN);
    answer(c, HF__DONE);
    for (int i = 0; i < LEN; i++)
        assert_int_equal(hf_lock_check(locks[i]), 0);
    end(c, LEN);
}

/* Holds that need no renewal are also checked in batches, because they may have
 * been broken. Such a batch is sent again too. The helper thread normally sets
 * the timers of these holds. */
CASE(test_renewals_without_need_are_sent_again)
{
    enum { LEN = 10 };
    hf__time now = hf__now();
    hf_client *c;

    backend.flags = HF__ENDLESS;
    c = hold(LEN);
    for (int i = 0; i < LEN; i++) {
        hf__mutex_lock(&c->mu);
        hf__timers_set(&c->timers, &locks[i]->line->timer, now + TERM);
        hf__mutex_unlock(&c->mu);
    }
    no_memory = true;
    deliver(c, now + TERM);
    no_memory = false;
    assert_int_equal(batches, 0);
    deliver(c, now + TERM + 100 * HF__MS);
    each_once(0, LEN);
    assert_int_equal(batches, 1);
    answer(c, HF__DONE);
    end(c, LEN);
    backend.flags = 0;
}

/* A hold that is released after it was examined is not in the batch, and
 * neither is the next hold of the same name. */
CASE(test_renewals_released_ones_stay_out)
{
    enum { LEN = 10 };
    hf_client *c = hold(LEN);

    replaces_at = LEN;
    deliver(c, hf__now() + TERM);
    replaces_at = 0;
    assert_int_equal(batches, 1);
    each_once(1, LEN);
    answer(c, HF__DONE);
    end(c, LEN);
}

static int renew(hf_lock *lock)
{
    return hf_lock_renew(lock, 0, NULL);
}

static int downgrade(hf_lock *lock)
{
    return hf_lock_downgrade(lock, NULL);
}

struct asking {
    pthread_t thread;
    hf_lock *lock;
    int (*verb)(hf_lock *);
    int rc;
};

static void *ask_it(void *arg)
{
    struct asking *a = arg;

    a->rc = a->verb(a->lock);
    return NULL;
}

/* Acquires a lock whose hold belongs to the handle: any thread may release
 * it. */
static hf_client *hold_by_handle(enum hf_kind kind, int64_t lease_ms)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_client *c = hold(0);

    /* A downgraded hold is renewed at once, but note_batch() does not know its
     * line. */
    server.in_renew = NULL;
    opt.lease_ms = lease_ms;
    locks[0] = make_lock(c, "h", kind, HF_OWNER_HANDLE, 0);
    assert_int_equal(hf_lock_acquire(locks[0], &opt, NULL), 0);
    return c;
}

static void end_by_handle(hf_client *c)
{
    assert_int_equal(hf_lock_free(locks[0]), 0);
    locks[0] = NULL;
    assert_int_equal(hf_close(c), 0);
}

/* Another thread releases the hold while a request about the hold is pending.
 * If `again` is set, that thread then acquires the lock again, and the answer
 * to the request does not concern the new hold. */
static void ask_of_released(enum hf_kind kind, int (*verb)(hf_lock *),
                            bool again)
{
    hf_client *c = hold_by_handle(kind, 0);
    struct asking a = {.lock = locks[0], .verb = verb};

    assert_int_equal(pthread_create(&a.thread, NULL, ask_it, &a), 0);
    assert_true(WAIT_FOR(!nothing_flies(c)));
    assert_int_equal(hf_lock_release(a.lock, NULL), 0);
    if (again)
        assert_int_equal(hf_lock_acquire(a.lock, NULL, NULL), 0);
    answer(c, HF__DONE);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.rc, HF_ENOTOWNER);
    assert_int_equal(hf_lock_check(a.lock), again ? 0 : HF_ENOTOWNER);
    assert_int_equal(hf_lock_release(a.lock, NULL), again ? 0 : HF_ENOTOWNER);
    end_by_handle(c);
}

ROW(test_renewal_of_what_was_released, ask_of_released(HF_MUTEX, renew, false));
ROW(test_renewal_of_what_was_released_and_taken_again,
    ask_of_released(HF_MUTEX, renew, true));
ROW(test_downgrade_of_what_was_released,
    ask_of_released(HF_RWLOCK, downgrade, false));
ROW(test_downgrade_of_what_was_released_and_taken_again,
    ask_of_released(HF_RWLOCK, downgrade, true));

#define SHORT_MS 1000 /* length of a fixed lease */

static bool lease_is_over(const hf_lock *lock)
{
    struct hf__line *n = lock->line;
    bool over;

    hf__line_lock(n);
    n = hf__pick_held(n, hf__owner_of(lock, NULL));
    over = hf__now() >= n->queue.lease.until;
    hf__line_unlock(lock->line);
    return over;
}

/* The server downgrades the hold in time, but its answer arrives after the
 * deadline. */
CASE(test_downgrade_that_is_answered_after_the_deadline)
{
    hf_client *c = hold_by_handle(HF_RWLOCK, SHORT_MS);
    struct asking a = {.lock = locks[0], .verb = downgrade};

    assert_int_equal(pthread_create(&a.thread, NULL, ask_it, &a), 0);
    assert_true(WAIT_FOR(!nothing_flies(c)));
    assert_true(WAIT_FOR(lease_is_over(a.lock)));
    answer(c, HF__DONE);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.rc, HF_ELOST);
    assert_int_equal(hf_lock_release(a.lock, NULL), HF_ELOST);
    end_by_handle(c);
}

CASE(test_downgrade_async_that_is_answered_too_late)
{
    hf_client *c = hold_by_handle(HF_RWLOCK, SHORT_MS);
    struct call call = {0};

    assert_int_equal(hf_lock_downgrade_async(locks[0], note_lock, &call, NULL),
                     0);
    assert_true(WAIT_FOR(lease_is_over(locks[0])));
    let_answer(c, 1, HF__DONE);
    assert_true(WAIT_FOR(is_called(c, &call)));
    assert_int_equal(call.result, HF_ELOST);
    assert_int_equal(hf_lock_release(locks[0], NULL), HF_ELOST);
    end_by_handle(c);
}

CASES_MAIN(NULL, NULL);
