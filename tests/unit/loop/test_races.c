/*
 * Moments that no real server can produce on demand: a test backend answers
 * when the test says so, and the client's free hook stops a thread.
 */
#include "../cases.h"
#include "core/async.h"

#include "../server_fixture.h"

enum { PASSES, STOPS, STOPPED, GOES_ON };

static pthread_t stops; /* the thread that stops at its next free() */
static uint32_t where;  /* atomic */

static void *take(void *ctx, size_t size)
{
    return malloc(size);
}

static void give(void *ctx, void *p)
{
    uint32_t now = STOPS;

    free(p);
    if (pthread_equal(stops, pthread_self()) &&
        __atomic_compare_exchange_n(&where, &now, STOPPED, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        WAIT_FOR(__atomic_load_n(&where, __ATOMIC_SEQ_CST) == GOES_ON);
}

static hf_client *open_client(void)
{
    static const hf_hooks hooks = {.alloc = take, .free = give};

    where = PASSES;
    return open_with(&hooks);
}

static void abandon(int16_t answer)
{
    hf_client *c = open_client();
    struct call call = {0, 0};
    hf_lock_options opt = LOCK_OPTIONS(.flags = HF_OWNER_HANDLE);
    hf_lock *lock;
    int64_t began;

    assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, &opt, &lock, NULL), 0);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, note_lock, &call, NULL),
                     0);
    assert_non_null(server.asked);
    server.answer = answer;
    server.answers_late = true;
    assert_int_equal(hf_lock_cancel(lock), 0);
    assert_true(WAIT_FOR(is_called(c, &call)));
    assert_int_equal(call.result, HF_ECANCELED);
    assert_int_equal(c->under_way, 0);
    assert_int_equal(lock->line->refs, 1);
    assert_int_equal(hf_lock_check(lock), HF_ENOTOWNER);
    assert_int_equal(hf_lock_free(lock), 0);
    began = wait_now();
    assert_int_equal(hf_close(c), 0);
    assert_true(wait_ms_since(began) < WAIT_LONG_MS / 2);
}

CASE(test_races_answer_between_giving_up_and_saying_so)
{
    abandon(HF__GRANTED);
    abandon(HF__QUEUED);
    abandon(HF_EUNKNOWN);
}

/* A thread that dispatches, learns that the answer was lost, sends the request
 * again, and then stops in the free hook. */
struct asker {
    hf_client *client;
    hf_latch *latch;
    struct call call;
    pthread_t thread;
};

static void *dispatch_until_stopped(void *arg)
{
    struct asker *a = arg;

    stops = pthread_self();
    __atomic_store_n(&where, STOPS, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&where, __ATOMIC_SEQ_CST) == STOPS)
        hf_client_dispatch(a->client);
    return NULL;
}

static void ask_again(struct asker *a)
{
    *a = (struct asker){.client = open_client()};
    assert_int_equal(hf_latch_new(a->client, "n", HF_CSTRING, &a->latch, NULL),
                     0);
    assert_int_equal(
        hf_latch_down_async(a->latch, NULL, note_latch, &a->call, NULL), 0);
    let_answer(a->client, 1, HF_EUNKNOWN);
    assert_int_equal(
        pthread_create(&a->thread, NULL, dispatch_until_stopped, a), 0);
    assert_true(WAIT_FOR(__atomic_load_n(&where, __ATOMIC_SEQ_CST) == STOPPED));
    assert_int_equal(a->call.called, 0);
}

static void go_on(struct asker *a)
{
    __atomic_store_n(&where, GOES_ON, __ATOMIC_SEQ_CST);
    pthread_join(a->thread, NULL);
}

CASE(test_races_given_up_while_it_asks_again)
{
    struct asker a;

    ask_again(&a);
    assert_int_equal(hf_latch_cancel(a.latch), 0);
    go_on(&a);
    let_answer(a.client, 1, HF__DONE); /* the caller has given up */
    assert_true(WAIT_FOR(is_called(a.client, &a.call)));
    assert_int_equal(a.call.result, HF_EUNKNOWN);
    assert_int_equal(hf_latch_free(a.latch), 0);
    assert_int_equal(hf_close(a.client), 0);
}

CASE(test_races_answered_and_freed_while_it_asks_again)
{
    struct asker a;

    ask_again(&a);
    let_answer(a.client, 1, HF__DONE);
    assert_true(WAIT_FOR(is_called(a.client, &a.call)));
    assert_int_equal(a.call.result, 0);
    assert_int_equal(hf_latch_free(a.latch), 0);
    go_on(&a);
    assert_int_equal(a.call.called, 1);
    assert_int_equal(hf_close(a.client), 0);
}

static bool helper_drives(hf_client *c)
{
    bool drives;

    hf__mutex_lock(&c->mu);
    drives = c->helper_drives;
    hf__mutex_unlock(&c->mu);
    return drives;
}

static bool helper_sleeps_for(hf_client *c, int64_t ms)
{
    hf__time until;

    hf__mutex_lock(&c->mu);
    until = c->helper_until;
    hf__mutex_unlock(&c->mu);
    return until > hf__now() + ms * HF__MS;
}

/* The driver leaves, and only an asynchronous wait is left, for which no thread
 * drives. The helper thread must take over at once, not only when the timer for
 * which it sleeps is due. */
CASE(test_races_driver_leaves_an_asynchronous_wait)
{
    hf_client *c = open_client();
    hf_lock_options opt = LOCK_OPTIONS(.flags = HF_OWNER_HANDLE);
    struct waiter w = {.cancel = HF_CANCEL_INIT};
    struct call call = {0, 0};
    hf_lock *lock;
    pthread_t t;

    assert_int_equal(hf_lock_new(c, "m", HF_CSTRING, &opt, &w.lock, NULL), 0);
    assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, &opt, &lock, NULL), 0);
    let_answer(c, 2, HF__QUEUED);
    assert_int_equal(pthread_create(&t, NULL, wait_for_it, &w), 0);
    assert_true(WAIT_FOR(is_queued(w.lock)));
    assert_int_equal(hf_lock_acquire_async(lock, NULL, note_lock, &call, NULL),
                     0);
    assert_true(WAIT_FOR(is_queued(lock)));
    assert_true(WAIT_FOR(helper_sleeps_for(c, 1500)));
    hf_cancel_fire(&w.cancel);
    pthread_join(t, NULL);
    assert_int_equal(w.rc, HF_ECANCELED);
    assert_true(WAIT_FOR_MS(helper_drives(c), 1000)); /* before its timer is
                                                         due */
    assert_int_equal(hf_lock_cancel(lock), 0);
    assert_true(WAIT_FOR(is_called(c, &call)));
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_lock_free(w.lock), 0);
    assert_int_equal(hf_close(c), 0);
}

/* Acquires a lock whose release is refused `refusals` times. */
static hf_client *hold(unsigned refusals, hf_lock **lock)
{
    hf_client *c = open_client();

    assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, NULL, lock, NULL), 0);
    let_answer(c, 1, HF__GRANTED);
    assert_int_equal(hf_lock_acquire(*lock, NULL, NULL), 0);
    hf__mutex_lock(&c->mu);
    server.refusals = refusals;
    hf__mutex_unlock(&c->mu);
    return c;
}

/* Returns whether the hold was released and its memory freed. */
static bool is_released(hf_client *c)
{
    bool released;

    hf__mutex_lock(&c->mu);
    released = server.released == 1 && c->names_len == 0;
    hf__mutex_unlock(&c->mu);
    return released;
}

CASE(test_races_refused_release_of_a_freed_handle)
{
    hf_lock *lock;
    hf_client *c = hold(2, &lock);

    assert_int_equal(hf_lock_release_nowait(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_true(WAIT_FOR(is_released(c)));
    assert_int_equal(hf_close(c), 0);
}

CASE(test_races_refused_release_in_close)
{
    hf_lock *lock;
    hf_client *c = hold(2, &lock);

    assert_int_equal(hf_close(c), 0);
    assert_int_equal(server.released, 1);
    assert_int_equal(hf_lock_free(lock), 0);
}

CASE(test_races_close_says_what_was_not_released)
{
    hf_lock *lock;
    hf_client *c = hold(1000, &lock);

    c->op_timeout_ms = 500;
    assert_int_equal(hf_close(c), HF_EUNKNOWN);
    assert_int_equal(server.released, 0);
    assert_int_equal(hf_lock_free(lock), 0);

    c = hold(1000, &lock); /* the handle is freed before the close */
    c->op_timeout_ms = 500;
    assert_int_equal(hf_lock_release_nowait(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), HF_EUNKNOWN);
}

static void ignore_event(void *arg, const hf_event *event)
{
}

static hf_lock *limited(hf_client *c, enum hf_kind kind, unsigned flags)
{
    hf_lock_options opt =
        LOCK_OPTIONS(.kind = kind, .flags = flags, .max_hold_ms = 100);
    hf_lock *lock;

    c->on_event = ignore_event; /* set before a name exists */
    assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, &opt, &lock, NULL), 0);
    return lock;
}

static int take_as(hf_lock *lock, enum hf_mode mode)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.mode = mode);

    return hf_lock_acquire(lock, &opt, NULL);
}

/* Acquires the lock and spins until the hold has ended, so that the caller can
 * act before the helper thread notices. */
static void outlive(hf_lock *lock, enum hf_mode mode)
{
    int64_t deadline;

    let_answer(lock->line->client, 1, HF__GRANTED);
    assert_int_equal(take_as(lock, mode), 0);
    assert_int_equal(hf_lock_deadline(lock, &deadline), 0);
    while (wait_now() < deadline)
        ;
}

static bool is_reported(hf_client *c)
{
    bool reported;

    hf__mutex_lock(&c->mu);
    reported = c->events_len == 1;
    hf__mutex_unlock(&c->mu);
    return reported;
}

static void end(hf_lock *lock)
{
    hf_client *c = lock->line->client;

    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

CASE(test_races_reentry_after_the_end)
{
    hf_client *c = open_client();
    hf_lock *lock = limited(c, HF_MUTEX, 0);

    outlive(lock, HF_WRITE);
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), HF_ELOST);
    assert_true(is_reported(c));
    end(lock);
}

CASE(test_races_asynchronous_reentry_after_the_end)
{
    hf_client *c = open_client();
    hf_lock *lock = limited(c, HF_MUTEX, HF_OWNER_HANDLE);
    struct call call = {0, 0};

    outlive(lock, HF_WRITE);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, note_lock, &call, NULL),
                     0);
    assert_true(is_reported(c));
    assert_true(WAIT_FOR(is_called(c, &call)));
    assert_int_equal(call.result, HF_ELOST);
    end(lock);
}

CASE(test_races_write_after_the_end_of_a_read)
{
    hf_client *c = open_client();
    hf_lock *lock = limited(c, HF_RWLOCK, 0);

    outlive(lock, HF_READ);
    assert_int_equal(take_as(lock, HF_WRITE), HF_ELOST);
    assert_true(is_reported(c));
    end(lock);
}

void __real_hf__callback_queue_locked(hf_client *, struct hf__async *, int);
void __wrap_hf__callback_queue_locked(hf_client *, struct hf__async *, int);

#define MARK 1000

static bool marks; /* protected by client->mu */

/* Queues a callback and marks its result. After this call another thread may
 * read the result: a result that the library writes later would lack the
 * mark. */
void __wrap_hf__callback_queue_locked(hf_client *c, struct hf__async *a,
                                      int result)
{
    __real_hf__callback_queue_locked(c, a, result);
    if (marks)
        a->result += MARK;
}

/* This function is replaced too, because the real one calls the locked function
 * within the same file, where --wrap has no effect. */
void __wrap_hf__callback_queue(struct hf__async *, int);

void __wrap_hf__callback_queue(struct hf__async *a, int result)
{
    hf_client *c = a->lock->line->client;

    hf__mutex_lock(&c->mu);
    __wrap_hf__callback_queue_locked(c, a, result);
    hf__mutex_unlock(&c->mu);
}

static void set_marks(hf_client *c, bool on)
{
    hf__mutex_lock(&c->mu);
    marks = on;
    hf__mutex_unlock(&c->mu);
}

static void is_told(hf_client *c, struct call *call, int result)
{
    assert_true(WAIT_FOR(is_called(c, call)));
    assert_int_equal(call->called, 1);
    assert_int_equal(call->result, MARK + result);
    *call = (struct call){0, 0};
}

static void acquire_async(hf_lock *lock, int64_t wait_ms, struct call *call)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.wait_ms = wait_ms);

    assert_int_equal(hf_lock_acquire_async(lock, &opt, note_lock, call, NULL),
                     0);
}

static void release_async(hf_lock *lock, struct call *call)
{
    assert_int_equal(hf_lock_release_async(lock, note_lock, call, NULL), 0);
}

/* Sets how attempts are answered from now on. */
static void let_try(hf_client *c, bool at_once, int16_t answer)
{
    hf__mutex_lock(&c->mu);
    server.at_once = at_once;
    server.answer = answer;
    hf__mutex_unlock(&c->mu);
}

/* Runs each verb, answered at once and later, with each possible result. */
static void run_verbs(hf_client *c, hf_lock *lock, struct call *call)
{
    let_try(c, true, HF__GRANTED);
    acquire_async(lock, HF_FOREVER, call);
    is_told(c, call, 0);
    acquire_async(lock, HF_FOREVER, call); /* refused by the local queue */
    is_told(c, call, HF_EDEADLK);
    release_async(lock, call);
    is_told(c, call, 0);
    release_async(lock, call); /* there is no hold */
    is_told(c, call, HF_ENOTOWNER);
    let_try(c, true, HF_EAUTH);
    acquire_async(lock, HF_FOREVER, call);
    is_told(c, call, HF_EAUTH);
    let_try(c, true, HF__QUEUED);
    acquire_async(lock, HF_FOREVER, call);
    assert_int_equal(hf_lock_cancel(lock), 0);
    is_told(c, call, HF_ECANCELED);
    acquire_async(lock, 1, call);
    is_told(c, call, HF_ETIMEDOUT);
    let_try(c, false, 0);
    let_answer(c, 1, HF__GRANTED);
    acquire_async(lock, HF_FOREVER, call);
    is_told(c, call, 0);
    hf__mutex_lock(&c->mu);
    server.keeps_releases = true;
    hf__mutex_unlock(&c->mu);
    release_async(lock, call);
    assert_int_equal(hf_lock_cancel(lock), 0);
    is_told(c, call, HF_EUNKNOWN);
    let_answer(c, 2, HF__DONE);
}

CASE(test_races_result_stands_when_the_callback_is_queued)
{
    static const enum hf_kind kinds[] = {HF_MUTEX, HF_RWLOCK};
    struct call call = {0, 0};

    for (int i = 0; i < 2; i++) {
        hf_client *c = open_client();
        hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
        hf_lock *lock;

        opt.kind = kinds[i];
        opt.flags = HF_OWNER_HANDLE;
        assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, &opt, &lock, NULL), 0);
        set_marks(c, true);
        run_verbs(c, lock, &call);
        set_marks(c, false);
        end(lock);
    }
}

CASES_MAIN(NULL, NULL);
