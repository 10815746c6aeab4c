/*
 * The nodes of semaphores at the server: alongside Curator's, with lost
 * replies, and with leases that are deleted. A lease is a node below LEASES, a
 * permit that is taken. A turn is a client's node below LOCKS: the client with
 * the first turn may take permits.
 */
#include "zk_faults.h"

#include <dlfcn.h>
#include <stdio.h>

GROUP("semaphore");

#define UUID "00000000-0000-4000-8000-000000000001"
#define LEASES NODE "/leases"
#define LOCKS NODE "/locks"

CASE(test_semaphore_has_curators_layout)
{
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 3);
    OK(hf_lock_acquire(a, HOW(HF_FOREVER, .permits = 2), &w->err));
    assert_int_equal(zk_server_children(w->zk, LEASES), 2);
    COMES(!zk_server_children(w->zk, LOCKS));
    OK(hf_lock_release(a, NULL));
    assert_int_equal(zk_server_children(w->zk, LEASES), 0);
}

/* A lease of a Curator client counts as taken, and our client waits behind a
 * Curator client that came earlier. */
CASE(test_semaphore_beside_curators_leases)
{
    struct zk_hand *h = hand(w);
    char lease[256], turn[256];
    struct taker *t;
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 1);
    OK(hf_lock_try(a, NULL)); /* creates the nodes */
    OK(hf_lock_release(a, NULL));
    create_below(w, LEASES, LEASES "/_c_" UUID "-lease-",
                 ZOO_EPHEMERAL_SEQUENTIAL, lease, sizeof(lease));
    EXPECT(HF_EBUSY, hf_lock_try(a, NULL));
    create_below(w, LOCKS, LOCKS "/_c_" UUID "-lock-", ZOO_EPHEMERAL_SEQUENTIAL,
                 turn, sizeof(turn));
    t = taker_start(w, a, 20000);
    COMES(zk_server_children(w->zk, LOCKS) == 2);
    OK(zk_hand_delete(h, lease));
    assert_false(taker_back(t)); /* Curator's turn comes first */
    OK(zk_hand_delete(h, turn));
    taker_gets_it(t, 4000);
}

enum { PASS_MS = 500 }; /* a try waits this long for its predecessors */

static void turn_of_another(struct world *w, char *turn, size_t size)
{
    create_below(w, LOCKS, LOCKS "/_c_" UUID "-lock-", ZOO_EPHEMERAL_SEQUENTIAL,
                 turn, size);
}

/* A client in front of the try finishes soon: the try waits for that with one
 * watch, and then gets a permit. */
CASE(test_semaphore_try_waits_for_who_passes)
{
    int rc = HF_EBUSY;
    char turn[256];
    struct taker *t;
    long watches;
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    for (int i = 0; i < 20 && rc; i++) { /* a stall causes HF_EBUSY */
        turn_of_another(w, turn, sizeof(turn));
        watches = zk_server_number(w->zk, "zk_watch_count");
        t = taker_start(w, a, 0);
        COMES(zk_server_number(w->zk, "zk_watch_count") > watches ||
              taker_back(t));
        OK(zk_hand_delete(hand(w), turn));
        COMES(taker_back(t));
        rc = t->rc;
        taker_end(t);
    }
    assert_int_equal(rc, 0);
}

/* The client in front of the try does not finish: the try soon returns
 * HF_EBUSY, and sends few requests. */
CASE(test_semaphore_try_behind_one_that_stands)
{
    char turn[256];
    long sent;
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    turn_of_another(w, turn, sizeof(turn));
    sent = zk_server_number(w->zk, "zk_packets_received");
    WITHIN(PASS_MS + 1000, EXPECT(HF_EBUSY, hf_lock_try(a, &w->err)));
    assert_true(zk_server_number(w->zk, "zk_packets_received") - sent < 50);
    OK(zk_hand_delete(hand(w), turn));
    OK(hf_lock_try(a, &w->err));
    OK(hf_lock_release(a, &w->err));
}

struct one_try {
    pthread_t thread;
    hf_lock *lock;
    int64_t took_ms;
    int rc;
};

static void *try_main(void *arg)
{
    struct one_try *t = arg;
    int64_t began = wait_now();

    t->rc = hf_lock_try(t->lock, NULL);
    t->took_ms = wait_ms_since(began);
    return NULL;
}

/* There are as many simultaneous tries as permits. Each try gets a permit,
 * unless the machine stalls and the try therefore waits too long for another
 * try. */
CASE(test_semaphore_tries_at_once)
{
    enum { ALL = WORLD_CLIENTS, ROUNDS = 20 };
    struct one_try t[ALL];

    for (size_t i = 0; i < ALL; i++)
        world_near(w);
    for (size_t i = 0; i < ALL; i++)
        t[i].lock = world_change(w, i, HF_SEMAPHORE, ALL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ALL; i++)
            OK(pthread_create(&t[i].thread, NULL, try_main, &t[i]));
        for (int i = 0; i < ALL; i++)
            pthread_join(t[i].thread, NULL);
        for (int i = 0; i < ALL; i++) {
            if (t[i].rc == HF_EBUSY && t[i].took_ms >= PASS_MS)
                continue;
            assert_int_equal(t[i].rc, 0);
            OK(hf_lock_release(t[i].lock, NULL));
        }
    }
}

CASE(test_semaphore_answer_swallowed)
{
    struct taker *t;
    hf_lock *a;

    world_far(w, 30000, 5000);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    /* LOCKS is not a container, so that the server does not remove it. */
    zk_hand_create(hand(w), NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
    OK(zk_hand_create(hand(w), LOCKS, "", 0, NULL, 0, NULL));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    COMES(zk_server_children(w->zk, LOCKS) == 1);
    world_heal(w);
    taker_has_it(t, 4000);
    assert_int_equal(zk_server_children(w->zk, LEASES), 1);
    taker_gives(t);
    COMES(!zk_hand_delete(hand(w), LOCKS));
}

/* The first client stores the number of permits before it gets one, so a
 * connection that breaks afterwards does not lose the number. */
CASE(test_semaphore_size_is_there_with_the_lease)
{
    char text[64] = "";
    struct taker *t;
    hf_lock *a, *b;

    world_far(w, 30000, 5000);
    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 3);
    b = world_change(w, 1, HF_SEMAPHORE, 5);
    proxy_set(w->proxy, PROXY_DELAY, 300);
    t = taker_start(w, a, 20000);
    COMES(zk_server_children(w->zk, LEASES) == 1);
    proxy_hoard(w->proxy);
    taker_has_it(t, WAIT_LONG_MS);
    world_heal(w);
    OK(zk_hand_get(hand(w), LEASES, text, sizeof(text)));
    assert_string_equal(text, "holdfast permits 3");
    EXPECT(HF_EMISMATCH, hf_lock_try(b, &w->err));
    taker_gives(t);
}

/* A semaphore must not be used alongside a kazoo lease or another unknown node,
 * but it may be used alongside locks whose names begin with its own name and a
 * slash. */
CASE(test_semaphore_minds_strangers)
{
    static const char lease[] = NODE "/00000000000040008000000000000001";
    hf_lock *a, *below;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    below = world_handle(w, w->clients[0], "n/b", NULL);
    OK(hf_lock_timed(below, 5000, &w->err));
    OK(hf_lock_timed(a, 5000, &w->err));
    OK(hf_lock_release(a, &w->err));
    OK(zk_hand_create(hand(w), lease, "", ZOO_EPHEMERAL, NULL, 0, NULL));
    EXPECT(HF_EMISMATCH, hf_lock_timed(a, 5000, &w->err));
    expect_words(w->err.text, lease + strlen(NODE) + 1);
    OK(zk_hand_delete(hand(w), lease));
    OK(hf_lock_timed(a, 5000, &w->err));
    OK(hf_lock_release(a, &w->err));
    OK(hf_lock_release(below, &w->err));
}

/* kazoo's semaphore uses nodes other than Curator's. If both kinds were used
 * under one name, each would grant n permits. */
CASE(test_kazoo_has_no_semaphore)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *lock;
    hf_client *c = world_open(w, text_of("%s?dialect=kazoo", w->zk->url), NULL);

    assert_int_equal(hf_client_caps(c, HF_SEMAPHORE), 0);
    opt.kind = HF_SEMAPHORE;
    opt.permits = 2;
    EXPECT(HF_ENOTSUP, hf_lock_new(c, "n", 1, &opt, &lock, &w->err));
    opt = (hf_lock_options)HF_LOCK_OPTIONS_INIT;
    lock = world_handle(w, c, "n", &opt);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void delete_lease(struct world *w, int permits, int which)
{
    struct String_vector names = {0};

    OK(zk_hand_children(hand(w), LEASES, &names));
    assert_int_equal(names.count, permits);
    qsort(names.data, (size_t)permits, sizeof(*names.data), by_name);
    OK(zk_hand_delete(hand(w), text_of(LEASES "/%s", names.data[which])));
    deallocate_String_vector(&names);
}

static bool is_lost(struct world *w, hf_lock *lock)
{
    hf_client_dispatch(w->clients[0]);
    return hf_lock_check(lock) == HF_ELOST;
}

/* Asserts that, whichever lease of a hold is deleted, the hold is lost and its
 * other leases are removed. */
static void loses_any_lease(struct world *w, hf_lock *a, int permits,
                            int64_t within_ms)
{
    const int which[] = {0, permits / 2, permits - 1};

    for (int i = 0; i < 3; i++) {
        OK(hf_lock_acquire(a, HOW(HF_FOREVER, .permits = (uint32_t)permits),
                           &w->err));
        delete_lease(w, permits, which[i]);
        if (!WAIT_FOR_MS(is_lost(w, a), within_ms))
            fail_msg("the loss of lease %d of %d is not noticed", which[i],
                     permits);
        COMES_MS(!zk_server_children(w->zk, LEASES), 10000);
        EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    }
    world_is_clean(w);
}

static hf_lock *deaf_semaphore(struct world *w, int64_t ttl_ms, uint32_t size)
{
    OK(hf_open(w->zk->url, CLIENT(.ttl_ms = ttl_ms), &w->clients[0], &w->err));
    w->len = 1;
    return world_change(w, 0, HF_SEMAPHORE, size);
}

CASE_IS(test_semaphore_one_of_its_leases_is_deleted,
        loses_any_lease(w, deaf_semaphore(w, 1500, 3), 2, 5000))

/* The hold has more leases than one transaction can create. */
CASE_IS(test_semaphore_one_of_many_leases_is_deleted,
        loses_any_lease(w, deaf_semaphore(w, 3000, 700), 600, 8000))

/* A program with an event callback is notified of the loss long before the next
 * renewal. */
CASE(test_semaphore_deleted_lease_is_heard_of)
{
    world_lock(w, w->zk->url, 60000, 5000, HF_FAIR);
    loses_any_lease(w, world_change(w, 0, HF_SEMAPHORE, 4), 3, 4000);
}

/* Deletes leases right after the server has created them and before the client
 * lists them. Can also delete a turn. */
static struct {
    struct zk_hand *hand;
    int times;        /* atomic: leases still to be deleted */
    int made;         /* atomic: creates that were sent */
    const char *turn; /* atomic: a turn to delete after the first lease */
} vandal;

static void delete_turn(const char *lease)
{
    const char *turn =
        __atomic_exchange_n(&vandal.turn, NULL, __ATOMIC_ACQ_REL);

    if (turn && (!WAIT_FOR(!zk_hand_stat(vandal.hand, lease, NULL)) ||
                 zk_hand_delete(vandal.hand, turn)))
        abort();
}

typedef int create_fn(zhandle_t *, const char *, const char *, int,
                      const struct ACL_vector *, int, string_stat_completion_t,
                      const void *);

__attribute__((visibility("default"))) int
zoo_acreate2(zhandle_t *zh, const char *path, const char *data, int len,
             const struct ACL_vector *acl, int mode,
             string_stat_completion_t done, const void *arg)
{
    create_fn *real = (create_fn *)dlsym(RTLD_NEXT, "zoo_acreate2");
    int rc = real(zh, path, data, len, acl, mode, done, arg);

    if (strncmp(path, LEASES "/", strlen(LEASES "/")) != 0)
        return rc;
    __atomic_add_fetch(&vandal.made, 1, __ATOMIC_RELAXED);
    if (__atomic_fetch_sub(&vandal.times, 1, __ATOMIC_ACQUIRE) > 0 &&
        !WAIT_FOR(!zk_hand_delete(vandal.hand, path)))
        abort();
    delete_turn(path);
    return rc;
}

/* Creates the parent node of the leases. It is not a container, because the
 * server could sweep an empty container, and the next create of a lease would
 * then fail. */
static void make_leases_node(struct world *w)
{
    zk_hand_create(hand(w), NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
    OK(zk_hand_create(hand(w), LEASES, "", 0, NULL, 0, NULL));
}

static void drop_leases_node(struct world *w)
{
    COMES(!zk_hand_delete(hand(w), LEASES));
}

/* From now on the next `times` leases that the client creates are deleted.
 * Until that has happened, only the thread that deletes them may use the
 * hand. */
static void meddle(struct world *w, int times)
{
    vandal.hand = hand(w);
    __atomic_store_n(&vandal.made, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&vandal.times, times, __ATOMIC_RELEASE);
}

/* Asserts how many leases the client has created. Each attempt creates two. If
 * one or both of them are deleted, the client makes another attempt. The last
 * attempt has kept both of its leases. */
static void has_two_leases(struct world *w, int times)
{
    assert_int_equal(__atomic_load_n(&vandal.made, __ATOMIC_RELAXED),
                     2 * ((times + 1) / 2 + 1));
    assert_int_equal(zk_server_children(w->zk, LEASES), 2);
}

CASE(test_semaphore_lease_deleted_unseen)
{
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 3);
    make_leases_node(w);
    for (int times = 1; times <= 4; times++) {
        meddle(w, times);
        if (hf_lock_acquire(a, HOW(0, .permits = 2), &w->err))
            fail_msg("%s", w->err.text);
        has_two_leases(w, times);
        OK(hf_lock_release(a, &w->err));
    }
    drop_leases_node(w);
}

/* Leases are deleted right after they were created. The client has waited, so
 * it watches the list of leases and is notified of each change. */
CASE(test_semaphore_waiters_lease_deleted_unseen)
{
    struct taker *t;
    hf_lock *a, *b;

    world_near(w);
    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    b = world_change(w, 1, HF_SEMAPHORE, 2);
    make_leases_node(w);
    for (int times = 1; times <= 4; times++) {
        OK(hf_lock_try(a, &w->err));
        t = taker_start_as(w, b, HF_WRITE, 2, WAIT_LONG_MS);
        COMES(zk_server_children(w->zk, LOCKS) == 1);
        COMES(zk_server_number(w->zk, "zk_watch_count") >= 2);
        meddle(w, times);
        OK(hf_lock_release(a, &w->err));
        taker_has_it(t, 3000);
        has_two_leases(w, times);
        taker_gets_it(t, 1000);
    }
    drop_leases_node(w);
}

static void note(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

static bool is_over(hf_client *c, const int *result)
{
    hf_client_dispatch(c);
    return *result <= 0;
}

static hf_lock *owned_semaphore(struct world *w, size_t client, uint32_t size)
{
    OK(hf_lock_free(w->locks[client]));
    w->locks[client] = NULL;
    OK(hf_lock_new(
        w->clients[client], "n", 1,
        KIND(HF_SEMAPHORE, .permits = size, .flags = HF_OWNER_HANDLE),
        &w->locks[client], &w->err));
    return w->locks[client];
}

static void only_turn(struct world *w, char *path, size_t size)
{
    struct String_vector names = {0};

    COMES(zk_server_children(w->zk, LOCKS) == 1);
    OK(zk_hand_children(hand(w), LOCKS, &names));
    assert_int_equal(names.count, 1);
    snprintf(path, size, LOCKS "/%s", names.data[0]);
    deallocate_String_vector(&names);
}

/* A client's turn is deleted when the client has created its leases. The client
 * queues again, behind the turn of the next client, which waits for these
 * leases. So the first client must not keep its leases while it waits. */
CASE(test_semaphore_turn_deleted_with_leases_out)
{
    char turn[256];
    struct taker *t;
    int granted = 1;
    hf_lock *holder, *first, *second;

    for (int i = 0; i < 3; i++)
        world_near(w);
    holder = world_change(w, 0, HF_SEMAPHORE, 1);
    first = owned_semaphore(w, 1, 1);
    second = world_change(w, 2, HF_SEMAPHORE, 1);
    OK(hf_lock_try(holder, &w->err));
    COMES(!zk_server_children(w->zk, LOCKS));
    OK(hf_lock_acquire_async(first, NULL, note, &granted, NULL));
    only_turn(w, turn, sizeof(turn));
    t = taker_start(w, second, HF_FOREVER);
    COMES(zk_server_children(w->zk, LOCKS) == 2);
    meddle(w, 0);
    __atomic_store_n(&vandal.turn, turn, __ATOMIC_RELEASE);
    OK(hf_lock_release(holder, &w->err));
    taker_gets_it(t, WAIT_LONG_MS);
    COMES(is_over(w->clients[1], &granted));
    assert_int_equal(granted, 0);
    assert_null(vandal.turn);
    OK(hf_lock_release(first, &w->err));
}

/* A lease is deleted while the reply to its create is on its way: the lock is
 * granted, and lost as soon as the client watches the lease. (If the lease is
 * deleted before the client lists the leases, which is unlikely, the client
 * creates it again.) */
CASE(test_semaphore_lease_deleted_behind_its_answer)
{
    struct taker *t;
    bool lost;
    hf_lock *a;

    world_far(w, 60000, 5000);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    proxy_set(w->proxy, PROXY_DELAY, 300);
    t = taker_start(w, a, WAIT_LONG_MS);
    COMES(zk_server_children(w->zk, LEASES) == 1);
    delete_lease(w, 1, 0);
    taker_has_it(t, 3000);
    COMES_MS((lost = is_lost(w, a)) || zk_server_children(w->zk, LEASES) == 1,
             3000);
    taker_end(t);
    assert_int_equal(t->release_rc, lost ? HF_ELOST : 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_free_for_all(w, a);
}
