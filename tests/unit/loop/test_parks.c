/*
 * A contended wait on a direct backend sleeps once, and sends no more than
 * three attempts: one when the wait begins, one when it queues, and one after
 * its bell.
 */
#include "../cases.h"
#include "../server_fixture.h"

/* Atomic: */
static uint32_t is_free, bell;
static uint32_t attempts, parks; /* parks: sleeps of waiting threads only */
static uint32_t parked;          /* threads that sleep in the backend now */

static uint32_t get(uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static int count_attempt(void *self, struct hf__req *req)
{
    uint32_t yes = 1;

    __atomic_add_fetch(&attempts, 1, __ATOMIC_SEQ_CST);
    if (__atomic_compare_exchange_n(&is_free, &yes, 0, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
        return HF__GRANTED;
    req->poll_at = HF__NEVER;
    return req->may_queue ? HF__QUEUED : HF__BUSY;
}

static int release(void *self, struct hf__req *req)
{
    set(&is_free, 1);
    set(&bell, 1);
    return HF__DONE;
}

static int abandon(void *self, struct hf__req *req)
{
    return HF__DONE;
}

static void park(void *self, struct hf__remote *remote, uint32_t *word,
                 uint32_t expect, hf__time until)
{
    if (!remote) {
        hf__futex_wait(word, expect, until);
        return;
    }
    __atomic_add_fetch(&parks, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&parked, 1, __ATOMIC_SEQ_CST);
    while (get(word) == expect && !get(&bell) && hf__now() < until)
        wait_tick();
    __atomic_sub_fetch(&parked, 1, __ATOMIC_SEQ_CST);
}

static hf_client *open_direct(void)
{
    backend.flags = HF__DIRECT | HF__ENDLESS;
    backend.attempt = count_attempt;
    backend.release = release;
    backend.abandon = abandon;
    backend.park = park;
    set(&is_free, 0);
    set(&bell, 0);
    set(&attempts, 0);
    set(&parks, 0);
    return open_with(NULL);
}

struct wish {
    hf_client *client;
    hf_lock *lock;
    hf_cancel *cancel;
    int64_t wait_ms;
    bool stops; /* the thread stops between its last check for news and its
                   sleep */
    pthread_t thread;
    int rc;
};

hf__time __real_hf__now(void);
hf__time __wrap_hf__now(void);

static __thread int stops_at; /* number of the call of hf__now() in which the
                                 thread stops */
static uint32_t stopped;      /* atomic */

hf__time __wrap_hf__now(void)
{
    if (stops_at && !--stops_at) {
        set(&stopped, 1);
        WAIT_FOR(!get(&stopped));
    }
    return __real_hf__now();
}

static void *wait_for_wish(void *arg)
{
    struct wish *w = arg;
    hf_acquire_options opt =
        ACQUIRE_OPTIONS(.wait_ms = w->wait_ms, .cancel = w->cancel);

    stops_at = w->stops ? 2 : 0; /* the first call is made to compute when the
                                    wait times out */
    w->rc = hf_lock_acquire(w->lock, &opt, NULL);
    return NULL;
}

static void begin(struct wish *w)
{
    if (!w->lock)
        assert_int_equal(
            hf_lock_new(w->client, "n", HF_CSTRING, NULL, &w->lock, NULL), 0);
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_wish, w), 0);
}

static void ring(void)
{
    set(&is_free, 1);
    set(&bell, 1);
}

static void wait_once(struct wish w)
{
    w.client = open_direct();
    begin(&w);
    assert_true(WAIT_FOR(get(&attempts) >= 2 && get(&parked)));
    ring();
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(get(&attempts), 3);
    assert_int_equal(get(&parks), 1);
    assert_int_equal(hf_lock_free(w.lock), HF_EBUSY);
    assert_int_equal(hf_close(w.client), 0);
    assert_int_equal(hf_lock_free(w.lock), 0);
}

CASE(test_parks_contended_wait_sleeps_once)
{
    hf_cancel cancel = HF_CANCEL_INIT;

    wait_once((struct wish){.wait_ms = HF_FOREVER});
    wait_once((struct wish){.wait_ms = WAIT_LONG_MS * 10});
    wait_once((struct wish){.wait_ms = HF_FOREVER, .cancel = &cancel});
    wait_once((struct wish){.wait_ms = WAIT_LONG_MS * 10, .cancel = &cancel});
}

static void ignore(void *arg, hf_lock *lock, int result)
{
}

/* A thread is about to sleep in the backend when another acquire of the same
 * lock notifies the thread once more that it should sleep. The notification
 * must not end the sleep: the thread sends no attempt before its bell is rung.
 */
CASE(test_parks_asked_to_while_about_to)
{
    struct wish w = {
        .client = open_direct(), .wait_ms = WAIT_LONG_MS * 10, .stops = true};
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *other;

    begin(&w);
    assert_true(WAIT_FOR(get(&stopped)));
    opt.flags = HF_OWNER_HANDLE;
    assert_int_equal(hf_lock_new(w.client, "n", HF_CSTRING, &opt, &other, NULL),
                     0);
    assert_int_equal(hf_lock_acquire_async(other, NULL, ignore, NULL, NULL), 0);
    set(&stopped, 0);
    assert_true(WAIT_FOR(get(&parked)));
    assert_true(NEVER_MS(get(&attempts) > 2, 50));
    ring();
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_int_equal(get(&attempts), 3);
    assert_int_equal(get(&parks), 1);
    assert_int_equal(hf_close(w.client), 0);
    assert_int_equal(hf_lock_free(w.lock), 0);
    assert_int_equal(hf_lock_free(other), 0);
}

/* A cancel that is fired when the thread is about to sleep is noticed. */
CASE(test_parks_cancelled_while_about_to)
{
    hf_cancel cancel = HF_CANCEL_INIT;
    struct wish w = {.client = open_direct(),
                     .wait_ms = WAIT_LONG_MS * 10,
                     .cancel = &cancel,
                     .stops = true};

    begin(&w);
    assert_true(WAIT_FOR(get(&stopped)));
    hf_cancel_fire(&cancel);
    set(&stopped, 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, HF_ECANCELED);
    assert_int_equal(get(&parks), 0);
    assert_int_equal(hf_lock_free(w.lock), 0);
    assert_int_equal(hf_close(w.client), 0);
}

CASES_MAIN(NULL, NULL);
