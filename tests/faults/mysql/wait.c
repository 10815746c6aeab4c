/* Waiting: the queue at the server, waiters that leave it, strangers that take
 * user locks, and servers without a queue. */
#include "mysql_faults.h"

#include "relay.h"

#include <stdio.h>

GROUP("wait");

enum { QUEUE = 8 };

static void queue_up(struct world *w, struct my_waiter *waiter, int n,
                     enum hf_kind kind)
{
    for (int i = 0; i < n; i++) {
        hf_client *c = my_open(w, my_one.url);

        my_waiter_start(&waiter[i], c, my_lock_as(w, c, "n", kind));
        my_has_waiters(i + 1);
    }
}

static void leave(struct world *w, struct my_waiter *waiter)
{
    my_waiter_end(waiter);
    assert_int_equal(waiter->release_rc, 0);
    world_ends(w, waiter->lock);
    world_ends(w, waiter->client);
}

/* Waiters get the lock in the order in which they queued. Each of them releases
 * it at once. */
static void served_in_order(struct world *w, enum hf_kind kind)
{
    hf_client *c = my_open(w, my_one.url);
    hf_lock *a = my_lock_as(w, c, "n", kind);
    static struct my_waiter waiter[QUEUE];

    OK(hf_lock_timed(a, 5000, &w->err));
    queue_up(w, waiter, QUEUE, kind);
    OK(hf_lock_release(a, &w->err));
    for (int i = 0; i < QUEUE; i++)
        __atomic_store_n(&waiter[i].done, 1, __ATOMIC_RELEASE);
    COMES(my_waiter_back(&waiter[QUEUE - 1]));
    for (int i = 0; i < QUEUE; i++) {
        COMES(my_waiter_back(&waiter[i]));
        assert_int_equal(waiter[i].rc, 0);
    }
    for (int i = 1; i < QUEUE; i++)
        if (waiter[i].place != waiter[0].place + (uint32_t)i)
            fail_msg("the waiter %d was served as number %u", i,
                     waiter[i].place - waiter[0].place);
    for (int i = 0; i < QUEUE; i++)
        leave(w, &waiter[i]);
    world_ends(w, a);
    world_ends(w, c);
}

CASE_IS(test_first_come_first_served, served_in_order(w, HF_MUTEX))
CASE_IS(test_writers_are_served_in_order, served_in_order(w, HF_RWLOCK))
CASE_IS(test_permits_are_given_in_order, served_in_order(w, HF_SEMAPHORE))

/* A waiter that gives up leaves the queue at once and blocks no other waiter,
 * whether it was the first or in the middle. */
static void cancelled(struct world *w, int which, enum hf_kind kind)
{
    hf_client *c = my_open(w, my_one.url);
    hf_lock *a = my_lock_as(w, c, "n", kind);
    static struct my_waiter waiter[3];

    OK(hf_lock_timed(a, 5000, &w->err));
    queue_up(w, waiter, 3, kind);
    hf_cancel_fire(&waiter[which].cancel);
    COMES_MS(my_waiter_back(&waiter[which]), 500);
    assert_int_equal(waiter[which].rc, HF_ECANCELED);
    COMES_MS(my_server_waiting(&my_one) == 2, 500);
    OK(hf_lock_release(a, &w->err));
    leave(w, &waiter[which]);
    for (int i = 0; i < 3; i++) {
        if (i == which)
            continue;
        COMES_MS(my_waiter_back(&waiter[i]), 500);
        assert_int_equal(waiter[i].rc, 0);
        leave(w, &waiter[i]);
    }
    world_ends(w, a);
    world_ends(w, c);
    world_is_clean(w);
}

CASE(test_first_in_the_queue_is_cancelled)
{
    cancelled(w, 0, HF_MUTEX);
    cancelled(w, 0, HF_RWLOCK);
}

CASE(test_second_in_the_queue_is_cancelled)
{
    cancelled(w, 1, HF_MUTEX);
    cancelled(w, 1, HF_RWLOCK);
}

/* The waiting connection is closed when the wait ends, and the next wait opens
 * a new one at once. */
CASE(test_cancelled_connection_is_closed)
{
    hf_lock *a = world_near(w), *b = world_near(w);

    OK(hf_lock_timed(a, 5000, &w->err));
    for (int i = 0; i < 20; i++) {
        int64_t began = wait_fair();

        EXPECT(HF_ETIMEDOUT, hf_lock_timed(b, 50, NULL));
        assert_true(wait_within(began, 50 + 1000));
        COMES_MS(my_server_connections(&my_one) == 2, 1000);
    }
    OK(hf_lock_release(a, &w->err));
    world_free_for_all(w, b);
}

/* Copies the hash that the names of the user locks of lock "n" contain. The
 * hash is in a waiter's statement. */
static void hash_of_lock(struct world *w, char *hash, size_t size)
{
    static struct my_waiter waiter;
    hf_client *c = my_open(w, my_one.url);
    hf_lock *a = my_lock(w, c, "n");
    const char *info, *at;

    OK(hf_lock_timed(a, 5000, &w->err));
    queue_up(w, &waiter, 1, HF_MUTEX);
    info = my_server_text(&my_one,
                          "select info from information_schema.processlist "
                          "where user='" MY_SERVER_USER "' and "
                          "state='User lock'");
    at = strstr(info, "'hfq:");
    if (!at)
        fail_msg("\"%s\" names no lock of ours", info);
    at += strlen("'hfq:");
    snprintf(hash, size, "%.*s", (int)strcspn(at, "'"), at);
    OK(hf_lock_release(a, &w->err));
    leave(w, &waiter);
    world_ends(w, a);
    world_ends(w, c);
}

/* Any account may take a user lock of any name, and cannot be asked to release
 * it. If a stranger owns the user lock of the queue, a waiter takes the lock
 * after it has found the lock free at two checks. */
enum { STRANGER_MS = 8000 + 3000 + 1000 };

static void stranger_has(struct world *w, const char *which)
{
    hf_lock *a, *b;
    struct taker *t;
    char hash[64];

    hash_of_lock(w, hash, sizeof(hash));
    a = world_near(w);
    b = world_near(w);
    assert_int_equal(my_number("select get_lock('%s:%s', 0)", which, hash), 1);
    world_takes(w, a, STRANGER_MS);
    t = taker_start(w, b, WAIT_MS);
    assert_true(NEVER_MS(taker_back(t), 300));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, STRANGER_MS);
    assert_int_equal(my_number("select release_lock('%s:%s')", which, hash), 1);
    world_free_for_all(w, a);
}

CASE_IS(test_stranger_has_the_bell, stranger_has(w, "hfb"))
CASE_IS(test_stranger_has_the_queue, stranger_has(w, "hfq"))

static void tried(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

/* Starts a try that finds the lock free but the user lock of its queue taken.
 * The attempt of this try is repeated a few times before the try ends with
 * HF_EBUSY. Returns how many other requests of the client were answered until
 * then. */
static int answers_beside_a_try(struct world *w, hf_client *c, hf_lock *lock)
{
    int n = 0, rc = 1;
    hf_info *info;

    OK(hf_lock_acquire_async(lock, HOW(0), tried, &rc, &w->err));
    while (rc == 1) {
        OK(hf_inspect(c, "m", HF_CSTRING, &info, &w->err));
        hf_info_free(info);
        hf_client_dispatch(c);
        n++;
    }
    assert_int_equal(rc, HF_EBUSY);
    return n;
}

/* A try pauses between its attempts in the client, not at the server, so the
 * pauses do not delay other requests on the connection. */
CASE(test_try_delays_no_others)
{
    enum { ANSWERS = 10, ROUNDS = 100 };
    hf_client *c = my_open(w, my_one.url);
    hf_lock *lock;
    char hash[64];
    int rounds = 0;

    hash_of_lock(w, hash, sizeof(hash));
    lock = world_handle(
        w, c, "n",
        KIND(HF_MUTEX, .flags = HF_OWNER_HANDLE, .fairness = HF_FAIR));
    assert_int_equal(my_number("select get_lock('hfq:%s', 10)", hash), 1);
    while (answers_beside_a_try(w, c, lock) < ANSWERS)
        if (++rounds == ROUNDS)
            fail_msg("the pauses of a try delay other requests");
    assert_int_equal(my_number("select release_lock('hfq:%s')", hash), 1);
}

static void polls(struct world *w, const char *url, const char *why)
{
    hf_lock *a = world_near(w);
    hf_lock *b = world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    struct taker *t;

    my_diagnosis_says(w->clients[1], HF_LEVEL_WARNING, why);
    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_start(w, b, WAIT_MS);
    assert_true(NEVER_MS(my_server_waiting(&my_one) > 0 || taker_back(t), 500));
    assert_int_equal(my_server_connections(&my_one), 2);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    world_is_clean(w);
}

CASE_IS(test_polls_if_told, polls(w, my_url("?wait=poll"), "wait=poll"))

/* The proxy may share connections, so the client cannot use GET_LOCK and
 * polls. */
static void polls_behind_a_proxy(struct world *w, bool is_old)
{
    struct relay *relay = relay_start(my_one.port);
    char url[128];

    assert_non_null(relay);
    if (is_old)
        relay_greets_as_old(relay);
    my_server_url_at(relay_port(relay), "", url, sizeof(url));
    polls(w, url, "proxy");
    hf_lock_free(w->locks[1]);
    hf_close(w->clients[1]);
    w->locks[1] = NULL;
    w->clients[1] = NULL;
    relay_end(relay);
}

CASE_IS(test_polls_behind_a_proxy_that_shares, polls_behind_a_proxy(w, false))

/* The version in the greeting is the proxy's own: the server behind it is not
 * too old. */
CASE_IS(test_polls_behind_a_proxy_of_an_old_version,
        polls_behind_a_proxy(w, true))

/* The proxy changes the time zone of one client's sessions: no lease may end
 * because of that. */
CASE(test_proxy_changes_the_time_zone)
{
    static const enum hf_kind kinds[] = {HF_MUTEX, HF_RWLOCK, HF_SEMAPHORE};
    struct relay *relay = relay_start(my_one.port);
    hf_client *a = my_open(w, my_one.url), *b;
    char url[128];

    assert_non_null(relay);
    relay_changes_zone(relay);
    my_server_url_at(relay_port(relay), "", url, sizeof(url));
    b = my_open(w, url);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const char *name[] = {"mutex", "rwlock", "semaphore"};
        hf_lock *mine = my_lock_as(w, a, name[i], kinds[i]);
        hf_lock *theirs = my_lock_as(w, b, name[i], kinds[i]);

        OK(hf_lock_timed(mine, 5000, &w->err));
        EXPECT(HF_ETIMEDOUT, hf_lock_timed(theirs, 500, NULL));
        OK(hf_lock_renew(mine, 0, &w->err));
        OK(hf_lock_release(mine, &w->err));
        world_ends(w, mine);
        world_ends(w, theirs);
    }
    world_ends(w, a);
    world_ends(w, b);
    relay_end(relay);
}

CASE(test_queues_otherwise)
{
    world_near(w);
    my_diagnosis_says(w->clients[0], HF_LEVEL_OK, "GET_LOCK");
}
