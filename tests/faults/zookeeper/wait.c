/* Waiters: how many of them a release wakes (one waiter of a fair queue, but
 * all waiters for an unfair lock), what wakes the driver, waiters that give up,
 * and lost events. */
#include "zk_faults.h"

#include <limits.h>
#include <sys/resource.h>

GROUP("wait");

#define WAITERS 100
#define THREADS 16
#define ROUNDS 500

/* Clients of one process: a holder, and others each of which is a waiter at the
 * server. */
struct herd {
    hf_client *holder, *client[WAITERS];
    hf_lock *held, *lock[WAITERS];
    int granted[WAITERS]; /* 1 if this waiter has the lock, negative for an
                             error */
};

static void note(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result ? result : 1;
}

static hf_lock *new_lock(hf_client *c, enum hf_fairness fairness)
{
    hf_lock *lock = NULL;

    OK(hf_lock_new(
        c, "n", 1,
        KIND(HF_MUTEX, .fairness = fairness, .flags = HF_OWNER_HANDLE), &lock,
        NULL));
    return lock;
}

static void gather(struct herd *h, struct world *w, enum hf_fairness fairness)
{
    OK(hf_open(w->zk->url, NULL, &h->holder, &w->err));
    h->held = new_lock(h->holder, fairness);
    OK(hf_lock_timed(h->held, 5000, &w->err));
    for (int i = 0; i < WAITERS; i++) {
        OK(hf_open(w->zk->url, NULL, &h->client[i], &w->err));
        h->lock[i] = new_lock(h->client[i], fairness);
        OK(hf_lock_acquire_async(h->lock[i], NULL, note, &h->granted[i],
                                 &w->err));
    }
    COMES(zk_server_number(w->zk, "zk_watch_count") >= WAITERS);
}

static int who_has_it(struct herd *h)
{
    for (int i = 0; i < WAITERS; i++) {
        hf_client_dispatch(h->client[i]);
        if (h->granted[i])
            return i;
    }
    return -1;
}

static long sum_of(struct world *w, const char *name)
{
    long n;

    COMES((n = zk_server_number(w->zk, name)) >= 0);
    return n;
}

static long woken(struct world *w)
{
    return sum_of(w, "zk_sum_node_deleted_watch_count") +
           sum_of(w, "zk_sum_node_children_watch_count") +
           sum_of(w, "zk_sum_node_changed_watch_count") +
           sum_of(w, "zk_sum_node_created_watch_count");
}

/* Returns how many more waiters the server has woken than `before`. First waits
 * until there are at least `least`, because the server counts an event a little
 * later than it sends it. */
static long woken_since(struct world *w, long before, long least)
{
    WAIT_FOR(woken(w) - before >= least);
    return woken(w) - before;
}

static void scatter(struct herd *h)
{
    hf_close(h->holder);
    hf_lock_free(h->held);
    for (int i = 0; i < WAITERS; i++) {
        hf_close(h->client[i]);
        hf_lock_free(h->lock[i]);
    }
}

/* Counts how many waiters are woken by one release and by the next release. */
static void release_twice(struct world *w, enum hf_fairness fairness,
                          long *first, long *second)
{
    struct herd *h = calloc(1, sizeof(*h));
    long before;
    int one;

    assert_non_null(h);
    gather(h, w, fairness);
    before = woken(w);
    OK(hf_lock_release(h->held, &w->err));
    COMES(who_has_it(h) >= 0);
    one = who_has_it(h);
    assert_int_equal(h->granted[one], 1);
    *first = woken_since(w, before, fairness == HF_FAIR ? 1 : WAITERS);
    /* Wait until the other waiters watch again. */
    COMES(zk_server_number(w->zk, "zk_watch_count") >= WAITERS - 1);
    before = woken(w);
    h->granted[one] = 0;
    OK(hf_lock_release(h->lock[one], &w->err));
    COMES(who_has_it(h) >= 0);
    *second = woken_since(w, before, fairness == HF_FAIR ? 1 : WAITERS - 1);
    scatter(h);
    free(h);
    world_is_clean(w);
}

CASE(test_fair_release_wakes_one)
{
    long first, second;

    release_twice(w, HF_FAIR, &first, &second);
    print_message("# fair, %d waiters: %ld and %ld woken\n", WAITERS, first,
                  second);
    assert_int_equal(first, 1);
    assert_int_equal(second, 1);
}

CASE(test_unfair_release_wakes_the_herd)
{
    long first, second;

    release_twice(w, HF_UNFAIR, &first, &second);
    print_message("# unfair, %d waiters: %ld and %ld woken\n", WAITERS, first,
                  second);
    assert_true(first >= WAITERS);
    assert_true(second >= WAITERS - 1);
}

struct crowd {
    hf_lock *lock;
    uint32_t waiting; /* atomic */
    int failed;       /* atomic */
};

static void *take_and_give(void *arg)
{
    struct crowd *c = arg;

    __atomic_add_fetch(&c->waiting, 1, __ATOMIC_RELAXED);
    if (hf_lock_timed(c->lock, 20000, NULL) || hf_lock_release(c->lock, NULL))
        __atomic_add_fetch(&c->failed, 1, __ATOMIC_RELAXED);
    return NULL;
}

CASE(test_threads_of_a_process_are_one_waiter)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct crowd c = {.lock = b};
    pthread_t thread[THREADS];

    OK(hf_lock_timed(a, 5000, NULL));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&thread[i], NULL, take_and_give, &c));
    COMES(__atomic_load_n(&c.waiting, __ATOMIC_RELAXED) == THREADS);
    world_has_entries(w, 2);
    assert_true(NEVER_MS(zk_server_children(w->zk, NODE) != 2, 300));
    OK(hf_lock_release(a, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(c.failed, 0);
}

struct sleeper {
    pthread_t thread;
    hf_lock *lock;   /* the lock to wait for, or NULL */
    hf_latch *latch; /* if `lock` is NULL: the latch to wait for */
    int rc;
    long sleeps;
};

static void *sleep_and_count(void *arg)
{
    struct sleeper *s = arg;
    struct rusage before, after;

    getrusage(RUSAGE_THREAD, &before);
    s->rc = s->lock ? hf_lock_timed(s->lock, 60000, NULL)
                    : hf_latch_wait(s->latch, 60000, NULL, NULL);
    getrusage(RUSAGE_THREAD, &after);
    s->sleeps = after.ru_nvcsw - before.ru_nvcsw;
    if (s->lock && !s->rc)
        hf_lock_release(s->lock, NULL);
    return NULL;
}

/* Starts the sleeper's thread, which drives the client. Then the calling thread
 * renews another lock ROUNDS times: each renewal is a request with one
 * reply. */
static void drive(struct world *w, struct sleeper *s)
{
    hf_lock *m;

    m = world_handle(w, w->clients[0], "m", NULL);
    OK(pthread_create(&s->thread, NULL, sleep_and_count, s));
    COMES(zk_server_number(w->zk, "zk_watch_count") >= 1);
    OK(hf_lock_timed(m, 5000, &w->err));
    for (int i = 0; i < ROUNDS; i++)
        OK(hf_lock_renew(m, 0, &w->err));
    OK(hf_lock_release(m, &w->err));
}

static long sleeps_for_lock(struct world *w, hf_lock *a, hf_lock *b)
{
    struct sleeper s = {.lock = a};

    OK(hf_lock_timed(b, 5000, &w->err));
    drive(w, &s);
    OK(hf_lock_release(b, &w->err));
    pthread_join(s.thread, NULL);
    assert_int_equal(s.rc, 0);
    return s.sleeps;
}

static long sleeps_for_latch(struct world *w)
{
    struct sleeper s = {0};

    s.latch = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(s.latch, 1, &w->err));
    drive(w, &s);
    OK(hf_latch_down(s.latch, NULL, &w->err));
    pthread_join(s.thread, NULL);
    assert_int_equal(s.rc, 0);
    world_ends(w, s.latch);
    return s.sleeps;
}

/* While a thread that waits for a lock or a latch drives the client, another
 * thread renews. The driver is woken by each reply to a renewal but not by the
 * request; otherwise it would sleep twice per renewal. On a busy machine a
 * thread sleeps more often, but not in every try. */
CASE(test_driver_is_woken_for_answers)
{
    enum { TRIES = 10, MOST = ROUNDS * 3 / 2 };
    hf_lock *a = world_near(w), *b = world_near(w);
    long locked = LONG_MAX, latched = LONG_MAX;

    for (int i = 0; i < TRIES && (locked >= MOST || latched >= MOST); i++) {
        long lock = sleeps_for_lock(w, a, b), latch = sleeps_for_latch(w);

        locked = lock < locked ? lock : locked;
        latched = latch < latched ? latch : latched;
        print_message(
            "# in %d rounds: the waiter for a lock slept %ld times, the one "
            "for a latch %ld times\n",
            ROUNDS, lock, latch);
    }
    assert_true(locked < MOST);
    assert_true(latched < MOST);
}

/* Acquires are begun while the client has no connection. Some of them are
 * cancelled, at different places among the waiting requests. When the client
 * has reconnected, it sends the requests of the other acquires, including the
 * last, which is begun after the first ones were cancelled. */
CASE(test_some_give_up_while_it_is_down)
{
    enum { ALL = 6, LATE = ALL - 1 };
    static const bool gives_up[ALL] = {
        [0] = true, [2] = true, [LATE - 1] = true};
    hf_lock *lock[ALL];
    int result[ALL] = {0};
    uint32_t lines;

    world_far(w, 30000, 20000);
    lines = world_lines(w, 0);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    COMES(world_lines(w, 0) > lines);
    for (int i = 0; i < ALL; i++) {
        char name[] = {(char)('a' + i)};

        OK(hf_lock_new(w->clients[0], name, 1,
                       KIND(HF_MUTEX, .flags = HF_OWNER_HANDLE), &lock[i],
                       NULL));
        for (int j = 0; j < i && i == LATE; j++)
            if (gives_up[j])
                OK(hf_lock_cancel(lock[j]));
        OK(hf_lock_acquire_async(lock[i], NULL, note, &result[i], NULL));
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    for (int i = 0; i < ALL; i++) {
        COMES((hf_client_dispatch(w->clients[0]), result[i] != 0));
        assert_int_equal(result[i], gives_up[i] ? HF_ECANCELED : 1);
        if (!gives_up[i])
            OK(hf_lock_release(lock[i], NULL));
        OK(hf_lock_free(lock[i]));
    }
}

enum { REPEAT_MS = 2000, TRIP_MS = 300 };

/* The event of the waiter's watch is lost: the waiter finds the change by
 * polling. */
static void waiter_finds_out(struct world *w, const char *name,
                             enum hf_kind kind, enum hf_fairness fairness,
                             int64_t lease_ms)
{
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *held, *waits;
    struct taker *t;
    long watches;

    opt.kind = kind;
    opt.fairness = fairness;
    opt.flags = HF_OWNER_HANDLE;
    opt.permits = kind == HF_SEMAPHORE;
    OK(hf_lock_new(w->clients[0], name, 1, &opt, &waits, &w->err));
    OK(hf_lock_new(w->clients[1], name, 1, &opt, &held, &w->err));
    OK(hf_lock_acquire(held, &how, &w->err));
    watches = sum_of(w, "zk_watch_count");
    t = taker_start_lease(w, waits, WAIT_LONG_MS, lease_ms);
    COMES(sum_of(w, "zk_watch_count") > watches);
    proxy_set(w->proxy, PROXY_LOSE_EVENTS, 0);
    OK(hf_lock_release(held, &w->err));
    taker_gets_it(t, REPEAT_MS + TRIP_MS);
    proxy_set(w->proxy, PROXY_PASS, 0);
    OK(hf_lock_free(waits));
    OK(hf_lock_free(held));
    world_is_clean(w);
}

CASE(test_a_lost_word_is_made_good)
{
    world_far(w, 30000, 20000);
    world_near(w);
    waiter_finds_out(w, "a", HF_MUTEX, HF_FAIR, 0);
    waiter_finds_out(w, "b", HF_MUTEX, HF_FAIR, 60000);
    waiter_finds_out(w, "c", HF_MUTEX, HF_UNFAIR, 0);
    waiter_finds_out(w, "d", HF_RWLOCK, HF_FAIR, 0);
    waiter_finds_out(w, "e", HF_SEMAPHORE, HF_FAIR, 0);
}

struct latch_waiter {
    hf_latch *latch;
    int rc;
    pthread_t thread;
    bool back; /* atomic */
};

static void *wait_for_latch(void *arg)
{
    struct latch_waiter *l = arg;

    l->rc = hf_latch_wait(l->latch, WAIT_LONG_MS, NULL, NULL);
    __atomic_store_n(&l->back, true, __ATOMIC_RELEASE);
    return NULL;
}

CASE(test_a_lost_word_on_a_latch_is_made_good)
{
    struct latch_waiter l = {0};
    hf_latch *near;
    long watches;

    world_far(w, 30000, 20000);
    world_near(w);
    l.latch = world_latch(w, w->clients[0], "l");
    near = world_latch(w, w->clients[1], "l");
    OK(hf_latch_set(near, 1, &w->err));
    watches = sum_of(w, "zk_watch_count");
    OK(pthread_create(&l.thread, NULL, wait_for_latch, &l));
    COMES(sum_of(w, "zk_watch_count") > watches);
    proxy_set(w->proxy, PROXY_LOSE_EVENTS, 0);
    OK(hf_latch_down(near, NULL, &w->err));
    COMES_MS(__atomic_load_n(&l.back, __ATOMIC_ACQUIRE), REPEAT_MS + TRIP_MS);
    pthread_join(l.thread, NULL);
    assert_int_equal(l.rc, 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
}
