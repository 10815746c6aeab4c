/* Which changes etcd reports, how many requests a waiter sends, and events that
 * are lost. */
#include "etcd_faults.h"

#include "../../lib/h2_frame.h"
#include "../any/watch.h"
#include "etcd.pb-c.h"

#include <string.h>
#include <time.h>

GROUP("watch");

CASE(test_watch_outlives_its_lease)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct seen s;
    char key[300];
    unsigned calls = watch_taken(w, &s, a);

    assert_true(entry(0, key, sizeof(key)));
    ctl("lease revoke %s", strchr(key, '/') + 1);
    COMES(is_seen(&s, calls));
    COMES(world_heard_loss(w, 0));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    hears(w, &s, b);
}

CASE_IS(test_watch_again_and_again, watch_again_and_again(w, HF_WATCH_PREFIX))

static double asked(void)
{
    static const char name[] = "grpc_server_started_total{grpc_method=\"Txn\","
                               "grpc_service=\"etcdserverpb.KV\","
                               "grpc_type=\"unary\"}";
    double n = -1;

    COMES((n = etcd_server_metric(&etcd_one, name)) >= 0);
    return n;
}

/* Asserts that a waiter continues to poll, but sends at most about two requests
 * per second. */
static void waits_at_no_cost(struct world *w, hf_lock *a, hf_lock *b)
{
    struct timespec nap = {1, 0};
    double before, seconds;
    int64_t began;
    struct taker *t;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 10 * WAIT_LONG_MS);
    has_entries(2);
    nanosleep(&nap, NULL); /* at first the waiter polls a few times in a row */
    began = wait_now();
    before = asked();
    assert_true(before > 0);
    for (int i = 0; i < 60 && asked() < before + 2; i++)
        nanosleep(&nap, NULL);
    assert_true(asked() >= before + 2);
    nanosleep(&nap, NULL);
    seconds = (double)(wait_now() - began) / 1e9;
    assert_true(asked() <= before + 10 + 2 * seconds);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, WAIT_LONG_MS);
}

CASE(test_waiting_costs_nothing)
{
    hf_lock *a = world_near(w), *b = world_near(w);

    waits_at_no_cost(w, a, b);
}

/* A semaphore has no single key by which a transaction could tell that nothing
 * has changed. Waiting for it must be cheap nevertheless. */
CASE(test_waiting_for_a_permit_costs_nothing)
{
    world_near(w);
    world_near(w);
    waits_at_no_cost(w, world_change(w, 0, HF_SEMAPHORE, 1),
                     world_change(w, 1, HF_SEMAPHORE, 1));
}

static double proposed(void)
{
    double n = -1;

    assert_true(WAIT_FOR(
        (n = etcd_server_metric(
             &etcd_one, "\netcd_server_proposals_committed_total ")) >= 0));
    return n;
}

/* An unfair waiter has no entry, and must not try to create an entry at each
 * poll: all members would have to store each try, and a full server would
 * refuse it. */
CASE(test_unfair_waiter_looks_without_writing)
{
    hf_lock *a = world_lock(w, w->near_url, 60000, 5000, HF_UNFAIR),
            *b = world_lock(w, w->near_url, 60000, 5000, HF_UNFAIR);
    double before, looks;
    struct taker *t;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 10 * WAIT_LONG_MS);
    assert_true(NEVER_MS(taker_back(t), 1000)); /* the first polls have ended */
    before = proposed();
    looks = asked();
    assert_true(WAIT_FOR(asked() >= looks + 2));
    assert_true(proposed() == before);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, WAIT_LONG_MS);
}

static uint32_t swallows;  /* atomic: drop all events from now on */
static uint32_t swallowed; /* atomic: number of dropped messages */

static bool is_event(const uint8_t *frame, size_t len)
{
    enum { PREFIX = 5, DATA = 0 };
    Etcd__WatchAnswer *a = NULL;
    bool is = false;

    if (frame[3] == DATA && len > H2_HEAD + PREFIX)
        a = etcd__watch_answer__unpack(NULL, len - H2_HEAD - PREFIX,
                                       frame + H2_HEAD + PREFIX);
    if (a)
        is = a->n_events && a->events[0]->kv;
    if (a)
        etcd__watch_answer__free_unpacked(a, NULL);
    return is;
}

static size_t swallow(char *data, size_t *len)
{
    size_t at = 0, frame;

    while (*len - at >= H2_HEAD) {
        const uint8_t *p = (uint8_t *)data + at;

        frame = H2_HEAD + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);
        if (*len - at < frame)
            break;
        if (!__atomic_load_n(&swallows, __ATOMIC_ACQUIRE) ||
            !is_event(p, frame)) {
            at += frame;
            continue;
        }
        __atomic_add_fetch(&swallowed, 1, __ATOMIC_RELEASE);
        *len -= frame;
        memmove(data + at, data + at + frame, *len - at);
    }
    return at;
}

static bool is_silent(struct world *w, struct taker *t)
{
    uint64_t before = proxy_sent(w->proxy);

    return NEVER_MS(taker_back(t), 300) && proxy_sent(w->proxy) == before;
}

/* Waits until the waiter has polled a few times and relies on its watch, and
 * drops all events from then on. */
static void is_asleep(struct world *w, struct taker *t)
{
    COMES(is_silent(w, t));
    __atomic_store_n(&swallowed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&swallows, 1, __ATOMIC_RELEASE);
}

/* The waiter's safety poll finds the change whose event was lost. */
static void finds_out(struct taker *t)
{
    taker_has_it(t, 2000 + 100);
    assert_true(__atomic_load_n(&swallowed, __ATOMIC_ACQUIRE) > 0);
    __atomic_store_n(&swallows, 0, __ATOMIC_RELEASE);
}

CASE(test_event_is_lost)
{
    static const struct {
        enum hf_kind kind;
        enum hf_fairness fairness;
        enum hf_mode mode;
    } of[] = {{HF_MUTEX, HF_FAIR, HF_WRITE},
              {HF_MUTEX, HF_UNFAIR, HF_WRITE},
              {HF_RWLOCK, HF_FAIR, HF_WRITE},
              {HF_RWLOCK, HF_FAIR, HF_READ},
              {HF_SEMAPHORE, HF_FAIR, HF_WRITE}};
    struct taker *t;

    proxy_censors(w->proxy, swallow);
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        world_lock(w, w->near_url, 30000, 5000, of[i].fairness);
        world_lock(w, w->far_url, 30000, 5000, of[i].fairness);
        for (size_t k = 0; k < 2 && of[i].kind != HF_MUTEX; k++)
            world_change(w, k, of[i].kind, of[i].kind == HF_SEMAPHORE);
        world_takes(w, w->locks[0], 3000);
        t = taker_start_as(w, w->locks[1], of[i].mode, 0, 10 * WAIT_LONG_MS);
        is_asleep(w, t);
        OK(hf_lock_release(w->locks[0], &w->err));
        finds_out(t);
        taker_gives(t);
        world_is_clean(w);
        for (; w->len; w->len--) {
            OK(hf_lock_free(w->locks[w->len - 1]));
            OK(hf_close(w->clients[w->len - 1]));
        }
    }
}

static void *take_and_give(void *arg)
{
    return hf_lock_timed(arg, 10 * WAIT_LONG_MS, NULL) ||
                   hf_lock_release(arg, NULL)
               ? arg
               : NULL;
}

/* Two clients wait for one permit each. When the first of them is granted its
 * permit, it writes its entry to notify the second, which must then acquire,
 * too. The event of that write is lost, as if the first client had died before
 * it could notify the second. */
CASE(test_event_of_the_one_before_is_lost)
{
    pthread_t before;
    void *failed;
    struct taker *t;

    proxy_censors(w->proxy, swallow);
    world_near(w);
    world_near(w);
    world_far(w, 30000, 5000);
    for (size_t i = 0; i < 3; i++)
        world_change(w, i, HF_SEMAPHORE, 2);
    OK(hf_lock_acquire(w->locks[0], HOW(HF_FOREVER, .permits = 2), &w->err));
    OK(pthread_create(&before, NULL, take_and_give, w->locks[1]));
    has_entries(2);
    t = taker_start_as(w, w->locks[2], HF_WRITE, 1, 10 * WAIT_LONG_MS);
    has_entries(3);
    is_asleep(w, t);
    OK(hf_lock_release(w->locks[0], &w->err));
    finds_out(t);
    taker_gives(t);
    pthread_join(before, &failed);
    assert_null(failed);
}

enum { UNDER_WAY = 3 };

static void note_result(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

static bool is_told(const struct world *w, const int *rc)
{
    hf_client_dispatch(w->clients[0]);
    return *rc <= 0;
}

/* The client is not notified that its lease has ended. While the server is
 * stopped, the client sends two keep-alives and a release. The reply to the
 * first keep-alive says that the lease does not exist. The reply to the second
 * must not end the connection, because the reply to the release is still to
 * come: it says that the hold was lost. */
CASE(test_lease_gone_with_two_keep_alives_under_way)
{
    hf_lock *lock[UNDER_WAY] = {0};
    int rc[UNDER_WAY] = {1, 1, 1};
    uint64_t sent;
    char key[300];

    proxy_censors(w->proxy, swallow);
    world_far(w, 60000, 20000);
    for (int i = 0; i < UNDER_WAY; i++) {
        OK(hf_lock_new(w->clients[0], i ? i > 1 ? "y" : "x" : "n", 1,
                       KIND(HF_MUTEX, .flags = HF_OWNER_HANDLE), &lock[i],
                       &w->err));
        world_takes(w, lock[i], 3000);
    }
    __atomic_store_n(&swallows, 1, __ATOMIC_RELEASE);
    assert_true(entry(0, key, sizeof(key)));
    ctl("lease revoke %s", strchr(key, '/') + 1);
    OK(server_stop(w->process));
    for (int i = 0; i < UNDER_WAY; i++) {
        sent = proxy_sent(w->proxy);
        assert_int_equal(
            i < 2
                ? hf_lock_renew_async(lock[i], 0, note_result, &rc[i], &w->err)
                : hf_lock_release_async(lock[i], note_result, &rc[i], &w->err),
            0);
        COMES(proxy_sent(w->proxy) > sent);
    }
    OK(server_continue(w->process));
    for (int i = 0; i < UNDER_WAY; i++) {
        COMES(is_told(w, &rc[i]));
        assert_int_equal(rc[i], HF_ELOST);
    }
    __atomic_store_n(&swallows, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < UNDER_WAY; i++) {
        hf_lock_release(lock[i], NULL);
        OK(hf_lock_free(lock[i]));
    }
}
