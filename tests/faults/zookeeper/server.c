/* Faults of a single server: it is killed, it ends sessions, an administrator
 * deletes nodes, and the server deletes ("sweeps") empty parents. */
#include "../any/any_faults.h"
#include "zk_faults.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

GROUP("server");

CASE(test_restart_hold_survives)
{
    hf_lock *a = world_lock(w, w->zk->url, 20000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    uint64_t token;

    OK(hf_lock_timed(a, 5000, NULL));
    token = token_of(a);
    zk_server_kill(w->zk);
    OK(zk_server_again(w->zk));
    world_renews(a); /* uses the new connection */
    assert_true(token_of(a) == token);
    FAILS(hf_lock_try(b, NULL));
    OK(hf_lock_release(a, &w->err));
    world_takes(w, b, 3000);
    assert_true(token_of(b) > token);
    OK(hf_lock_release(b, NULL));
}

/* An outage that is shorter than the caller's wait and the op_timeout does not
 * make the acquire fail. */
CASE_IS(test_restart_during_timed_acquire,
        any_restart_while_acquiring(w,
                                    world_lock(w, w->zk->url, 30000, 60000,
                                               HF_FAIR_DEFAULT),
                                    500, 3000))

/* A forked child has a copy of the connection's descriptor: when the connection
 * has ended, a waiter must not be woken repeatedly because of that copy. */
CASE(test_restart_while_a_child_lives)
{
    hf_lock *a = world_lock(w, w->zk->url, 30000, 60000, HF_FAIR_DEFAULT);
    int64_t began, cpu;
    struct taker *t;
    pid_t child;

    world_free_for_all(w, a);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    zk_server_kill(w->zk);
    t = taker_start(w, a, 60000);
    began = wait_now();
    cpu = cpu_ms();
    COMES(wait_ms_since(began) > 1000);
    assert_true(cpu_ms() - cpu < 500);
    OK(zk_server_again(w->zk));
    taker_gets_it(t, 3000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* The server ends the session while no message reaches the client. The client
 * learns that the session has ended when it reconnects. */
CASE(test_expired_session_is_replaced)
{
    hf_lock *a = world_far(w, 3000, 2000), *b = world_near(w);
    uint64_t token;

    OK(hf_lock_timed(a, 5000, NULL));
    token = token_of(a);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    world_takes(w, b, 5000);
    EXPECT(HF_ELOST, hf_lock_check(a));
    assert_true(token_of(b) > token);
    world_heal(w);
    COMES_MS(world_heard_loss(w, 0), 5000);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    OK(hf_lock_check(b));
    OK(hf_lock_release(b, NULL));
    world_free_for_all(w, a);
    world_takes(w, a, 3000);
    assert_true(token_of(a) > token);
    /* The client keeps the new session alive as it did the old session. */
    world_renews(a);
    world_renews(a);
    OK(hf_lock_release(a, NULL));
}

CASE(test_expired_session_of_a_waiter)
{
    hf_lock *a = world_near(w), *b = world_far(w, 1000, 10000);
    struct taker *t = taker_behind(w, a, b, 20000);

    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    world_has_entries(w, 1); /* the waiter's entry was removed */
    world_heal(w);
    world_has_entries(w, 2); /* the waiter has queued again by itself */
    assert_false(taker_back(t));
    OK(hf_lock_release(a, NULL));
    taker_gets_it(t, 2000);
}

/* Another connection closes the session in the client's name, before the
 * deadline. */
CASE(test_ended_session_is_the_reason_of_the_loss)
{
    hf_lock *a = world_lock(w, w->zk->url, 20000, 5000, HF_FAIR_DEFAULT);
    char path[256];
    struct Stat stat;

    OK(hf_lock_timed(a, 5000, NULL));
    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_stat(zk_server_hand(w->zk), path, &stat));
    do /* retries, as the client may reclaim its session first */
        zk_hand_close(zk_hand_steal(text_of("127.0.0.1:%d", w->zk->port),
                                    stat.ephemeralOwner));
    while (hf_lock_check(a) == 0 &&
           !WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, 3000));
    world_loses(w, 0, "the server has ended the session 0x");
    world_free_for_all(w, a);
}

CASE(test_killed_server_is_the_reason_of_the_loss)
{
    hf_lock *a = world_lock(w, w->zk->url, 5000, 1000, HF_FAIR_DEFAULT);

    OK(hf_lock_timed(a, 5000, NULL));
    zk_server_kill(w->zk);
    world_loses(w, 0, "Connection refused");
    expect_words(w->ears[0].reason, "could not be used since ");
    OK(zk_server_again(w->zk));
}

static void delete_hold(struct world *w)
{
    char path[256];

    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_delete(zk_server_hand(w->zk), path));
}

CASE(test_deleted_node_is_learned)
{
    hf_lock *a = world_lock(w, w->zk->url, 6000, 1000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);

    OK(hf_lock_timed(a, 5000, NULL));
    delete_hold(w);
    world_takes(w, b, 3000);
    COMES_MS(hf_lock_check(a) == HF_ELOST, 3000);
    world_loses(
        w, 0,
        "it is no longer on the server (broken, or its node was deleted)");
    OK(hf_lock_check(b));
    world_has_entries(w, 1);
    OK(hf_lock_release(b, NULL));
}

/* A waiter whose entry was deleted queues again; or it is granted the lock
 * without an entry, and then learns that the hold was lost. */
CASE(test_deleted_place_is_learned)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct String_vector names = {0};
    char first[256];
    const char *path;
    struct taker *t = taker_behind(w, a, b, 20000);

    world_first_entry(w, first, sizeof(first));
    OK(zk_hand_children(zk_server_hand(w->zk), NODE, &names));
    for (int i = 0; i < names.count; i++) {
        path = text_of(NODE "/%s", names.data[i]);
        if (strcmp(path, first) != 0)
            zk_hand_delete(zk_server_hand(w->zk), path);
    }
    deallocate_String_vector(&names);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, 3000);
    taker_end(t);
    assert_true(t->release_rc == 0 || t->release_rc == HF_ELOST);
    world_free_for_all(w, a);
}

CASE(test_parent_swept_between)
{
    hf_lock *a = world_near(w);

    for (int i = 0; i < 3; i++) {
        world_free_for_all(w, a);
        world_is_clean(w); /* waits until the server has deleted the parent */
    }
}

struct sweeper {
    struct zk_server *server;
    uint32_t over; /* atomic */
    long swept;
};

static void *sweep(void *arg)
{
    struct sweeper *s = arg;
    struct zk_hand *h =
        zk_hand_open(text_of("127.0.0.1:%d", s->server->port), 10000);

    while (h && !__atomic_load_n(&s->over, __ATOMIC_ACQUIRE))
        s->swept += zk_hand_delete(h, NODE) == 0;
    zk_hand_close(h);
    return NULL;
}

/* The lock's parent node is deleted whenever it has no child. */
CASE(test_parent_swept_all_the_time)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct sweeper s = {.server = w->zk};
    pthread_t thread;
    struct taker *t;
    uint64_t last = 0;

    OK(pthread_create(&thread, NULL, sweep, &s));
    for (int i = 0; i < 150; i++) {
        if (hf_lock_timed(a, 5000, &w->err))
            fail_msg("round %d: %s", i, w->err.text);
        assert_true(token_of(a) > last);
        last = token_of(a);
        t = i % 10 ? NULL : taker_start(w, b, 5000);
        if (t)
            world_has_entries(w, 2);
        OK(hf_lock_release(a, &w->err));
        if (t)
            taker_gets_it(t, 3000);
    }
    __atomic_store_n(&s.over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_true(s.swept > 10);
}

struct refused {
    hf_lock *lock;
    uint32_t over; /* atomic */
    long others;   /* results that are not HF_EAUTH */
};

static void *be_refused(void *arg)
{
    struct refused *r = arg;

    while (!__atomic_load_n(&r->over, __ATOMIC_ACQUIRE))
        r->others += hf_lock_try(r->lock, NULL) != HF_EAUTH;
    return NULL;
}

/* The client may not create the parent of one name: this must not affect its
 * acquires of another name. */
CASE(test_parent_swept_while_another_is_refused)
{
    hf_lock *a = world_near(w), *anns;
    struct sweeper s = {.server = w->zk};
    struct refused r = {0};
    pthread_t sweeper, other;
    hf_client *ann;

    ann = world_open(w, text_of("zk://ann:secret@127.0.0.1:%d", w->port), NULL);
    anns = world_handle(w, ann, "t", NULL);
    OK(hf_lock_acquire(anns, NULL, &w->err));
    OK(hf_lock_new(w->clients[0], "t/m", 3, NULL, &r.lock, &w->err));
    OK(pthread_create(&sweeper, NULL, sweep, &s));
    OK(pthread_create(&other, NULL, be_refused, &r));
    for (int i = 0; i < 200; i++) {
        if (hf_lock_timed(a, 5000, &w->err))
            fail_msg("round %d: %s", i, w->err.text);
        OK(hf_lock_release(a, &w->err));
    }
    __atomic_store_n(&s.over, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&r.over, 1, __ATOMIC_RELEASE);
    pthread_join(sweeper, NULL);
    pthread_join(other, NULL);
    assert_int_equal(r.others, 0);
    OK(hf_lock_free(r.lock));
    OK(hf_lock_release(anns, &w->err));
}

/* A node of another lock below ours has no effect. */
CASE(test_deeper_names_are_other_locks)
{
    hf_lock *a = world_near(w), *deep;

    deep = world_handle(w, w->clients[0], "n/deep", NULL);
    OK(hf_lock_try(deep, &w->err));
    world_free_for_all(w, a);
    OK(hf_lock_release(deep, NULL));
}

#define ENTRY(n)                                                               \
    NODE "/_c_00000000-0000-4000-8000-00000000000" n "-lock-000000000"

/* When the server's sequence numbers are used up, all entries get the same
 * number, and the order of their creation decides. (To simulate this, the test
 * creates entries with the numbers that the entries of the clients have.) */
CASE(test_one_number_is_ordered_by_creation)
{
    struct zk_hand *h = zk_server_hand(w->zk);
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    OK(zk_hand_create(h, NODE, NULL, ZOO_CONTAINER, NULL, 0, NULL));
    OK(zk_hand_create(h, ENTRY("1") "1", NULL, ZOO_EPHEMERAL, NULL, 0, NULL));
    EXPECT(HF_EBUSY, hf_lock_try(a, &w->err)); /* its number is also 1 */
    OK(zk_hand_create(h, ENTRY("2") "2", NULL, ZOO_EPHEMERAL, NULL, 0, NULL));
    t = taker_start(w, b, WAIT_LONG_MS); /* its number is 3 */
    world_has_entries(w, 3);
    OK(zk_hand_create(h, ENTRY("3") "3", NULL, ZOO_EPHEMERAL, NULL, 0, NULL));
    OK(zk_hand_delete(h, ENTRY("2") "2"));
    OK(zk_hand_delete(h, ENTRY("1") "1"));
    taker_gets_it(t, 3000);
    OK(zk_hand_delete(h, ENTRY("3") "3"));
}
