/* A cluster of three members loses its leader, its quorum or the member that
 * the client uses. */
#include "cluster.h"

#include "../../lib/diagnosis.h"
#include "../../lib/proc.h"

#include <stdio.h>

GROUP("cluster", .start = cluster_start_three);

#define MEMBERS (etcd_three.server)
#define MS 1000000
#define TTL_MS 6000

static hf_lock *at(struct world *w, const char *url, int64_t ttl_ms,
                   int64_t op_ms)
{
    return world_lock(w, url, ttl_ms, op_ms, HF_FAIR_DEFAULT);
}

static struct etcd_server *leader(void)
{
    struct etcd_server *s = NULL;

    COMES((s = etcd_cluster_leader(&etcd_three)));
    return s;
}

static struct etcd_server *follower(int n)
{
    struct etcd_server *s = etcd_cluster_follower(&etcd_three, n);

    assert_non_null(s);
    return s;
}

/* Returns a URL of all members that begins with the member at that port. */
static const char *first_at(int port)
{
    static char url[96];
    size_t len =
        (size_t)snprintf(url, sizeof(url), "etcd://127.0.0.1:%d", port);

    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (MEMBERS[i].port != port)
            len += (size_t)snprintf(url + len, sizeof(url) - len,
                                    ",127.0.0.1:%d", MEMBERS[i].port);
    return url;
}

static void waits_for(struct world *w, long entries)
{
    if (!WAIT_FOR(w->server->left(w) == entries)) {
        w->server->print_left(w);
        fail_msg("not %ld entries", entries);
    }
}

/* Kills the leader; returns whether another member leads and the killed one has
 * rejoined. */
static bool kill_leader(void)
{
    struct etcd_server *s = NULL;

    if (!WAIT_FOR((s = etcd_cluster_leader(&etcd_three))))
        return false;
    etcd_server_kill(s);
    return WAIT_FOR(etcd_cluster_leader(&etcd_three)) &&
           etcd_cluster_heal(&etcd_three) == 0;
}

CASE(test_leader_killed_hold_and_waiter_survive)
{
    hf_lock *a = at(w, first_at(leader()->port), 10000, 5000);
    hf_lock *b = at(w, first_at(follower(0)->port), 10000, 5000);
    struct taker *t;
    uint64_t token;

    world_takes(w, a, 5000);
    token = token_of(a);
    t = taker_start(w, b, 60000);
    waits_for(w, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(kill_leader());
        world_renews(a);
        assert_false(taker_back(t));
    }
    assert_true(token_of(a) == token);
    waits_for(w, 2);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 5000);
}

CASE(test_leader_killed_under_load)
{
    char urls[3][96];

    for (int i = 0; i < 3; i++)
        snprintf(urls[i], sizeof(urls[i]), "%s", first_at(MEMBERS[i].port));
    any_load(w, (const char *[]){urls[0], urls[1], urls[2]}, kill_leader);
}

/* A member has forwarded a request to a leader that dies, so the request is
 * lost. The member reports that only after 5 s plus twice the election timeout;
 * the client sends the request again before that. */
CASE(test_request_lost_with_the_leader_is_sent_again)
{
    hf_lock *a = world_far(w, 30000, 20000);
    struct etcd_server *s;
    struct taker *t;
    uint64_t before;

    world_free_for_all(w, a);
    s = leader();
    assert_true(s->port != w->port);
    OK(etcd_server_stop(s));
    before = proxy_sent(w->proxy);
    t = taker_start(w, a, 5500); /* ends before the member reports */
    COMES(proxy_sent(w->proxy) > before);
    assert_true(NEVER_MS(taker_back(t), 150)); /* the request is forwarded */
    etcd_server_kill(s);
    taker_gets_it(t, 5500);
}

CASE(test_all_killed_hold_survives)
{
    hf_lock *a = at(w, etcd_three.url, 30000, 5000);
    uint64_t token;

    world_takes(w, a, 5000);
    token = token_of(a);
    for (int i = 0; i < ETCD_CLUSTER; i++)
        etcd_server_kill(&MEMBERS[i]);
    OK(etcd_cluster_heal(&etcd_three));
    world_renews(a);
    assert_true(token_of(a) == token);
    OK(hf_lock_release(a, &w->err));
}

/* The clients switch to another member, where the hold and the wait
 * continue. */
static void goes_on_elsewhere(struct world *w, const char *url,
                              void (*cut)(struct world *), int64_t ttl_ms)
{
    hf_lock *a = at(w, url, ttl_ms, 5000), *b = at(w, url, ttl_ms, 5000);
    struct taker *t;

    world_takes(w, a, 5000);
    t = taker_start(w, b, 60000);
    waits_for(w, 2);
    cut(w);
    for (int i = 0; i < 3; i++)
        world_renews(a);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 2000); /* the waiter, too, has left the cut member */
    OK(etcd_cluster_heal(&etcd_three));
    world_is_clean(w);
}

static void stop_first(struct world *w)
{
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (MEMBERS[i].port == w->port)
            OK(etcd_server_stop(&MEMBERS[i]));
}

static void stop_leader(struct world *w)
{
    OK(etcd_server_stop(leader()));
}

static void black_hole(struct world *w)
{
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
}

static void lose_packets(struct world *w)
{
    proxy_set(w->proxy, PROXY_LOSS, 0);
}

static void refuse(struct world *w)
{
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
}

CASE_IS(test_member_stopped,
        goes_on_elsewhere(w, first_at(w->port), stop_first, TTL_MS))
CASE_IS(test_leader_stopped,
        goes_on_elsewhere(w, first_at(leader()->port), stop_leader, TTL_MS))

/* Runs goes_on_elsewhere() with a URL whose first member is behind the
 * proxy. */
static void behind_the_proxy(struct world *w, void (*cut)(struct world *))
{
    goes_on_elsewhere(w,
                      text_of("etcd://127.0.0.1:%d,127.0.0.1:%d",
                              proxy_port(w->proxy), leader()->port),
                      cut, TTL_MS);
}

/* A waiter's member is cut off, so the waiter gets no event. The waiter must
 * leave that member long before its lease is in danger. */
static void hears_elsewhere(struct world *w, void (*cut)(struct world *))
{
    hf_lock *a = at(w, etcd_three.url, 30000, 5000), *b;
    struct taker *t;
    const char *url = text_of("etcd://127.0.0.1:%d,127.0.0.1:%d",
                              proxy_port(w->proxy), leader()->port);

    b = at(w, url, 30000, 5000);
    world_takes(w, a, 5000);
    t = taker_start(w, b, 60000);
    waits_for(w, 2);
    cut(w);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 5000);
    proxy_set(w->proxy, PROXY_PASS, 0);
}

CASE_IS(test_member_in_a_black_hole, behind_the_proxy(w, black_hole))
CASE_IS(test_waiter_in_a_black_hole, hears_elsewhere(w, black_hole))
CASE_IS(test_waiter_whose_packets_vanish, hears_elsewhere(w, lose_packets))
CASE_IS(test_member_refuses, behind_the_proxy(w, refuse))

static void stop_others(const struct etcd_server *but)
{
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (&MEMBERS[i] != but)
            OK(etcd_server_stop(&MEMBERS[i]));
}

static void go_on(void)
{
    OK(etcd_cluster_heal(&etcd_three));
}

/* The other members are stopped, and the remaining one was a follower: its
 * replies confirm nothing. */
CASE(test_no_quorum_confirms_nothing)
{
    enum { MOST_MS = 4000 };
    struct etcd_server *s = follower(0);
    hf_lock *a = at(w, first_at(s->port), MOST_MS, 700);
    hf_lock *b = at(w, first_at(s->port), 30000, 700);
    int64_t stopped, until = 0;

    world_free_for_all(w, b);
    world_takes(w, a, 5000);
    stop_others(s);
    stopped = wait_now();
    FAILS(hf_lock_renew(a, 0, &w->err));
    WITHIN(500 + 1000, FAILS(hf_lock_timed(b, 500, &w->err)));
    COMES_MS(hf_lock_deadline(a, &until) == HF_ELOST, MOST_MS + 1000);
    assert_true(until <= stopped + (int64_t)MOST_MS * MS);
    FAILS(hf_lock_try(b, &w->err));
    go_on();
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_free_for_all(w, a);
    world_free_for_all(w, b);
}

/* A leader may confirm keep-alives until it knows that it has lost its quorum.
 * Even so the hold ends at its deadline, and no client is granted anything. */
CASE(test_leader_without_quorum_grants_nothing)
{
    enum { MOST_MS = 3000 };
    struct etcd_server *s = leader();
    hf_lock *a = at(w, first_at(s->port), MOST_MS, 700);
    hf_lock *b = at(w, first_at(s->port), 30000, 700);

    world_takes(w, a, 5000);
    stop_others(s);
    FAILS(hf_lock_timed(b, 500, &w->err));
    COMES(hf_lock_check(a) == HF_ELOST);
    FAILS(hf_lock_try(b, &w->err));
    go_on();
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_free_for_all(w, b);
    world_free_for_all(w, a);
}

/* A key that the test writes right after the client's request, through the same
 * member. Nothing but was_done() deletes it. If this write is executed late, so
 * was the request. */
#define PROBE "holdfast:client/probe"

static bool was_done(struct etcd_server *s)
{
    char out[64] = "";

    OK(etcd_server_ctl(s, "del " PROBE, out, sizeof(out)));
    return out[0] == '1';
}

/* Starts an acquire whose request the member does not answer, writes PROBE, and
 * waits until the client has given up the acquire. */
static void give_up(struct world *w, hf_lock *lock, struct etcd_server *member)
{
    uint64_t before = proxy_sent(w->proxy);
    struct taker *t = taker_start(w, lock, 100);

    COMES(proxy_sent(w->proxy) > before);
    etcd_server_ctl(member, "--command-timeout=1s put " PROBE " x", NULL, 0);
    COMES(taker_back(t));
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
}

/* Acquires and releases a lock whose client uses this member through the
 * proxy. */
static void take_and_release_at(struct world *w, hf_lock *lock,
                                struct etcd_server *member)
{
    proxy_lead_to(w->proxy, member->port);
    proxy_cut(w->proxy);
    COMES(hf_lock_timed(lock, 1000, &w->err) == 0);
    OK(hf_lock_release(lock, &w->err));
}

/* The leader has logged the request and executes it when the other members run
 * again. Returns whether it was executed. */
static bool leader_does_it_later(struct world *w, hf_lock *a)
{
    struct etcd_server *s = leader();

    take_and_release_at(w, a, s);
    stop_others(s);
    give_up(w, a, s);
    go_on();
    return was_done(s);
}

/* A member forwards the request to a leader that is stopped. When that server
 * continues, it is no longer the leader. It forwards the request to the new
 * leader, which executes it after all later requests. Returns whether the
 * request was executed. */
static bool passed_on_late(struct world *w, hf_lock *a)
{
    struct etcd_server *s = leader(), *member = follower(0);

    take_and_release_at(w, a, member);
    OK(etcd_server_stop(s));
    give_up(w, a, member);
    COMES(hf_lock_timed(a, 1000, &w->err) == 0);
    OK(hf_lock_release(a, &w->err));
    was_done(member);
    world_is_clean(w);
    go_on();
    return WAIT_FOR_MS(was_done(member), 1000);
}

/* The client has given up a request for the lock, and the request is executed
 * later. It must leave nothing at the server. Whether the request is executed
 * at all depends on etcd, so the test tries several times. */
static void given_up(struct world *w,
                     bool (*is_done)(struct world *, hf_lock *))
{
    hf_lock *a = world_far(w, 30000, 1000), *b = world_near(w);
    int done = 0;

    for (int i = 0; i < 12 && done < 2; i++) {
        done += is_done(w, a);
        world_free_for_all(w, b);
        world_is_clean(w);
    }
    assert_true(done);
}

CASE_IS(test_given_up_without_quorum, given_up(w, leader_does_it_later))
CASE_IS(test_given_up_and_passed_on_late, given_up(w, passed_on_late))

static void note(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

static bool came_back(hf_client *c, const int *result)
{
    hf_client_dispatch(c);
    return *result != 1;
}

/* One writer holds the lock, a second writer waits for it, and a reader waits
 * for both writers. The second writer gives up between two polls of the reader.
 * The reader must not get the lock. */
CASE(test_writer_that_gives_up_lets_no_reader_in)
{
    hf_lock *a, *b = NULL, *c;
    struct taker *t;
    int result = 1;

    world_near(w);
    world_near(w);
    world_far(w, 30000, 9000);
    a = world_change(w, 0, HF_RWLOCK, 0);
    world_change(w, 1, HF_RWLOCK, 0);
    c = world_change(w, 2, HF_RWLOCK, 0);
    OK(hf_lock_new(w->clients[1], "n", 1,
                   KIND(HF_RWLOCK, .flags = HF_OWNER_HANDLE), &b, NULL));
    world_takes(w, a, 5000);
    OK(hf_lock_acquire_async(b, NULL, note, &result, NULL));
    waits_for(w, 2);
    proxy_set(w->proxy, PROXY_DELAY, 1200);
    t = taker_start_as(w, c, HF_READ, 0, 4000);
    waits_for(w, 3);
    OK(hf_lock_cancel(b));
    COMES(came_back(w->clients[1], &result));
    OK(hf_lock_free(b));
    taker_fails(t, HF_ETIMEDOUT, WAIT_LONG_MS);
    world_heal(w);
    OK(hf_lock_release(a, &w->err));
}

CASE(test_diagnose_counts_the_members)
{
    hf_client *c = world_open(w, etcd_three.url, NULL);

    diagnosis_says(c, HF_LEVEL_OK, "cluster", "3 members, of which 1");
    diagnosis_says(c, HF_LEVEL_OK, "hosts", "names 3 of 3");
    c = world_open(w, MEMBERS[0].url, NULL);
    diagnosis_says(c, HF_LEVEL_WARNING, "hosts", "names 1 of 3");
}
