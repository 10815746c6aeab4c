/* How a session survives outages, and how it ends: what errors say, how soon
 * the client reconnects, and what happens if the user is refused, or if
 * descriptors or memory are missing. */
#include "../any/any_faults.h"
#include "zk_faults.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define NO_DIGEST "-Dzookeeper.DigestAuthenticationProvider.enabled=false"

static struct rlimit descriptors; /* the limit before the test */

static int note_limit(struct world *w)
{
    return getrlimit(RLIMIT_NOFILE, &descriptors);
}

/* Restores the limit, which a failed test may have lowered: the check of the
 * server after the test needs a descriptor. */
static int restore_limit(struct world *w)
{
    return setrlimit(RLIMIT_NOFILE, &descriptors);
}

GROUP("session", .begin = note_limit, .end = restore_limit);

static void names_server(struct world *w, const char *why)
{
    expect_words(w->err.text, text_of("127.0.0.1:%d: %s", w->port, why));
}

CASE(test_dead_server_is_named)
{
    hf_lock *a = world_lock(w, w->near_url, 30000, 1000, HF_FAIR_DEFAULT);
    hf_info *info = NULL;

    world_takes(w, a, 5000);
    zk_server_kill(w->zk);
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    names_server(w, "Connection refused");
    EXPECT(HF_EUNKNOWN, hf_inspect(w->clients[0], "n", 1, &info, &w->err));
    names_server(w, "Connection refused");
    EXPECT(HF_EBACKEND, hf_lock_timed(a, 5000, &w->err));
    names_server(w, "Connection refused");
    OK(zk_server_again(w->zk));
    world_free_for_all(w, a);
}

CASE_IS(test_outage_is_two_lines, any_outage_is_two_lines(w))

/* A time limit, in ms, that is long enough however slowly the server starts. */
#define PATIENT_MS 120000

static void back_soon(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->near_url, PATIENT_MS, PATIENT_MS, fair);
    hf_lock *b = world_lock(w, w->near_url, PATIENT_MS, PATIENT_MS, fair);
    struct taker *t;

    world_takes(w, a, 5000);
    t = taker_start(w, b, PATIENT_MS);
    COMES(zk_server_number(w->zk, "zk_watch_count") > 0);
    zk_server_kill(w->zk);
    OK(zk_server_again(w->zk));
    OK(hf_lock_release(a, &w->err));
    /* The server was serving again before the release. But while it started, it
     * may have accepted the client's connection without ever answering on it,
     * which costs the client a second: hence the limit of 2 s. */
    taker_gets_it(t, 2000);
}

CASE_IS(test_waiter_is_back_soon, back_soon(w, HF_FAIR))
CASE_IS(test_unfair_waiter_is_back_soon, back_soon(w, HF_UNFAIR))

/* The session's timeout is 5 minutes. By itself the ZooKeeper library would
 * pause for a sixtieth of that time before it tries again. */
CASE_IS(test_long_session_is_back_soon,
        any_gone_for(w, PROXY_REFUSE, 300000, 1500, 1500))

/* The client requests the longest possible session, and the server reduces it
 * to what it allows. */
CASE(test_longest_session_is_opened)
{
    hf_lock *a = world_lock(w, w->near_url, INT32_MAX, 5000, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
}

/* The connection is accepted, but nothing ever arrives on it. */
CASE_IS(test_forgotten_connection_is_given_up,
        any_gone_for(w, PROXY_BLACK_HOLE, 60000, 500, 2500))

CASE(test_refused_user_is_told_by_open)
{
    struct zk_server s = {.flags = {NO_DIGEST}};
    hf_client *c = NULL;

    OK(zk_server_start(&s));
    EXPECT(HF_EAUTH, hf_open(text_of("zk://ann:Geheimnis@127.0.0.1:%d", s.port),
                             NULL, &c, &w->err));
    assert_null(c);
    expect_words(w->err.text, "127.0.0.1");
    expect_words(w->err.text, "refuses the user");
    assert_null(strstr(w->err.text, "Geheimnis"));
    zk_server_end(&s);
}

/* The server refuses the user only after the client was opened: the client
 * retries occasionally, not all the time. */
CASE(test_user_refused_later)
{
    struct zk_server s = {.flags = {NULL}};
    int64_t cpu;
    hf_lock *a;

    OK(zk_server_start(&s));
    a = world_lock(w, text_of("zk://ann:Geheimnis@127.0.0.1:%d", s.port), 30000,
                   1000, HF_FAIR_DEFAULT);
    world_free_for_all(w, a);
    zk_server_kill(&s);
    s.flags[0] = NO_DIGEST;
    OK(zk_server_again(&s));
    cpu = cpu_ms();
    for (int i = 0; i < 3; i++)
        EXPECT(HF_EBACKEND, hf_lock_timed(a, 5000, &w->err));
    expect_words(w->err.text, "refuses the user");
    assert_true(world_lines(w, 0) <= 2); /* the lost connection and session */
    assert_true(cpu_ms() - cpu < 500);
    zk_server_kill(&s);
    s.flags[0] = NULL;
    OK(zk_server_again(&s));
    COMES(hf_lock_timed(a, 1000, NULL) == 0);
    OK(hf_lock_release(a, &w->err));
    OK(hf_close(w->clients[0]));
    w->clients[0] = NULL;
    zk_server_end(&s);
}

CASE(test_close_beside_a_stopped_server)
{
    hf_lock *a = world_lock(w, w->near_url, 2000, 500, HF_FAIR_DEFAULT);
    int64_t began;

    world_takes(w, a, 5000);
    OK(zk_server_stop(w->zk));
    began = wait_fair();
    EXPECT(HF_EUNKNOWN, hf_close(w->clients[0]));
    w->clients[0] = NULL;
    assert_true(wait_within(began, 500 + 1000));
    OK(zk_server_continue(w->zk));
}

static int find_sockets(int port, int fd[], int max)
{
    int n = 0;

    for (int i = 0; i < 1024; i++) {
        struct sockaddr_in in = {0};
        socklen_t len = sizeof(in);

        if (getpeername(i, (struct sockaddr *)&in, &len) ||
            in.sin_family != AF_INET || ntohs(in.sin_port) != port)
            continue;
        if (n < max)
            fd[n] = i;
        n++;
    }
    return n;
}

/* The process has a free descriptor for the library's socket but none for the
 * backend's duplicate of it. Therefore replies do not wake the client, and it
 * must poll. */
CASE(test_no_descriptor_to_watch)
{
    hf_lock *a = world_lock(w, w->near_url, 30000, 5000, HF_FAIR_DEFAULT);
    struct rlimit less = descriptors;
    int fd[2], hog[1024], hogs = 0;
    int64_t cpu;

    world_free_for_all(w, a);
    world_is_clean(w);
    zk_server_leave(w->zk);
    assert_int_equal(find_sockets(w->port, fd, 2), 2);
    less.rlim_cur = (rlim_t)fd[1];
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    while (hogs < 1024 && (hog[hogs] = dup(fd[0])) >= 0)
        hogs++;
    /* Copies of the connection's descriptor would keep the connection open, so
     * they are replaced by copies of stderr. */
    for (int i = 0; i < hogs; i++)
        dup2(2, hog[i]);
    shutdown(fd[0], SHUT_RDWR);
    cpu = cpu_ms();
    for (int i = 0; i < 20; i++)
        world_free_for_all(w, a);
    assert_int_equal(find_sockets(w->port, fd, 2), 1);
    assert_true(cpu_ms() - cpu < 1000);
    while (hogs)
        close(hog[--hogs]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    world_free_for_all(w, a);
    COMES(find_sockets(w->port, fd, 2) >= 2);
}

static bool no_memory; /* atomic */

static void *give(void *ctx, size_t size)
{
    return __atomic_load_n(&no_memory, __ATOMIC_RELAXED) ? NULL : malloc(size);
}

static void take_back(void *ctx, void *p)
{
    free(p);
}

/* Without memory the client cannot send what keeps the session alive: it
 * retries occasionally, not all the time. */
CASE(test_no_memory_to_stay_alive)
{
    hf_hooks hooks = {.alloc = give, .free = take_back};
    int64_t cpu, began;

    OK(hf_open(w->far_url,
               CLIENT(.hooks = &hooks, .ttl_ms = 6000, .op_timeout_ms = 50),
               &w->clients[0], &w->err));
    w->len = 1;
    OK(hf_lock_new(w->clients[0], "n", 1, NULL, &w->locks[0], &w->err));
    /* Requests that stay in flight use up the reserved memory. */
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    for (int i = 0; i < 10; i++)
        FAILS(hf_lock_try(w->locks[0], NULL));
    __atomic_store_n(&no_memory, true, __ATOMIC_RELAXED);
    began = wait_now();
    cpu = cpu_ms();
    COMES(wait_ms_since(began) > 3500);
    assert_true(cpu_ms() - cpu < 700);
    __atomic_store_n(&no_memory, false, __ATOMIC_RELAXED);
    world_heal(w);
    COMES(hf_lock_timed(w->locks[0], 1000, NULL) == 0);
    hf_lock_release(w->locks[0], NULL); /* the session may have ended */
}

/* The thread that drives the client may be asleep for a long time when another
 * thread sends a request. The driver must wake in time to notice that the
 * server is silent. */
CASE(test_silence_is_noticed_by_who_sleeps)
{
    hf_lock *waits = world_far(w, 30000, 5000), *b = world_near(w), *a;
    struct taker *t;
    uint64_t sent;

    OK(hf_lock_new(w->clients[0], "m", 1, NULL, &a, &w->err));
    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_behind(w, b, waits, 20000);
    do
        sent = proxy_sent(w->proxy);
    while (!NEVER_MS(proxy_sent(w->proxy) != sent, 1500));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    OK(hf_lock_release_nowait(a, &w->err));
    COMES(proxy_sent(w->proxy) != sent);
    sent = proxy_sent(w->proxy);
    COMES_MS(proxy_sent(w->proxy) != sent, 1000);
    world_heal(w);
    OK(hf_lock_release(b, &w->err));
    taker_gets_it(t, 4000);
    taker_end(t);
    COMES(hf_lock_free(a) == 0);
}

static hf_lock *with_options(struct world *w, const struct zk_server *s,
                             const char *options, int64_t ttl_ms)
{
    return world_lock(w, text_of("%s%s", s->url, options), ttl_ms, 5000,
                      HF_FAIR_DEFAULT);
}

static void is_refused(struct world *w, const struct zk_server *s,
                       const char *options, const char *why)
{
    hf_client *c = NULL;

    EXPECT(HF_EINVAL,
           hf_open(text_of("%s%s", s->url, options), NULL, &c, &w->err));
    expect_words(w->err.text, why);
}

/* The server allows sessions that are shorter than two of its ticks, but does
 * not tell clients how long a tick is. The URL may contain the tick. If the
 * client needs the tick but the URL does not contain it, the client logs a
 * line. */
CASE(test_session_shorter_than_two_ticks)
{
    struct zk_server s = {.tick_ms = 2000, .min_session_ms = 500};
    hf_lock *lock;

    OK(zk_server_start(&s));
    is_refused(w, &s, "?ttl=1500ms&tick=2s", "1500 ms");
    is_refused(w, &s, "?tick=0", "tick=0");
    is_refused(w, &s, "?tick=two", "tick=two");
    is_refused(w, &s, "?tick=2h", "tick=2h");
    lock = with_options(w, &s, "?tick=2s", 3000);
    assert_int_equal(world_lines(w, 0), 0);
    COMES(hf_lock_timed(lock, 5000, &w->err) == 0);
    hf_lock_release(lock, NULL); /* the hold may have ended by now */
    with_options(w, &s, "", 3000);
    assert_int_equal(world_lines(w, 1), 1);
    with_options(w, &s, "", 4000);
    assert_int_equal(world_lines(w, 2), 0);
    for (size_t i = 0; i < w->len; i++) {
        OK(hf_lock_free(w->locks[i]));
        OK(hf_close(w->clients[i]));
        w->locks[i] = NULL;
        w->clients[i] = NULL;
    }
    zk_server_end(&s);
}

enum { TAKEN = 200, RENEWED_MS = 15000, TRIP_MS = 1000 };

static void take_away(struct world *w, const char *name)
{
    struct String_vector names = {0};
    char path[256];

    snprintf(path, sizeof(path), "/%s", name);
    OK(zk_hand_children(hand(w), path, &names));
    assert_int_equal(names.count, 1);
    snprintf(path, sizeof(path), "/%s/%s", name, names.data[0]);
    OK(zk_hand_delete(hand(w), path));
    deallocate_String_vector(&names);
}

static size_t lost_of(hf_lock *const *lock, size_t len)
{
    size_t lost = 0;

    for (size_t i = 0; i < len; i++)
        lost += hf_lock_check(lock[i]) == HF_ELOST;
    return lost;
}

/* However many holds were deleted and however slow the network is, one renewal
 * finds all deleted holds and keeps the others. One round trip for each hold
 * would take longer than the session lasts. (A client with an event callback
 * would be notified of each loss earlier; this client has none.) */
CASE(test_renewal_finds_all_that_are_gone)
{
    static const struct manner mutex = {HF_MUTEX, HF_FAIR, HF_WRITE};
    hf_lock *lock[TAKEN + 1];
    char name[16];

    OK(hf_open(w->far_url, CLIENT(.ttl_ms = RENEWED_MS), &w->clients[0],
               &w->err));
    w->len = 1;
    for (int i = 0; i <= TAKEN; i++) {
        snprintf(name, sizeof(name), "n/%d", i);
        lock[i] = held_as(w, name, &mutex);
    }
    for (int i = 0; i < TAKEN; i++) {
        snprintf(name, sizeof(name), "n/%d", i);
        take_away(w, name);
    }
    proxy_set(w->proxy, PROXY_DELAY, TRIP_MS);
    COMES_MS(lost_of(lock, TAKEN) == TAKEN,
             RENEWED_MS / 3 + 2000 + 4 * TRIP_MS);
    OK(hf_lock_check(lock[TAKEN]));
    world_renews(lock[TAKEN]);
    proxy_set(w->proxy, PROXY_PASS, 0);
    for (int i = 0; i <= TAKEN; i++) {
        assert_int_equal(hf_lock_release(lock[i], &w->err),
                         i < TAKEN ? HF_ELOST : 0);
        OK(hf_lock_free(lock[i]));
    }
}

static hf_lock *quiet_hold(struct world *w, const char *url)
{
    OK(hf_open(url, CLIENT(.ttl_ms = 20000, .op_timeout_ms = 10000),
               &w->clients[0], &w->err));
    w->len = 1;
    OK(hf_lock_new(w->clients[0], "n", 1, NULL, &w->locks[0], &w->err));
    OK(hf_lock_timed(w->locks[0], 5000, &w->err));
    return w->locks[0];
}

/* Ends the client's session as an administrator can: takes the session over and
 * closes it. Repeats this until the entry is gone, because the client may take
 * its session back before it is closed. */
static void close_its_session(struct world *w)
{
    char path[256];
    struct Stat stat;

    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_stat(hand(w), path, &stat));
    while (zk_hand_stat(hand(w), path, &stat) == 0)
        zk_hand_close(zk_hand_steal(text_of("127.0.0.1:%d", w->port),
                                    stat.ephemeralOwner));
}

/* Returns whether the server has closed a connection that is still open on this
 * side. */
static bool is_cut_off(int port)
{
    int fd[16], n = find_sockets(port, fd, 16);

    for (int i = 0; i < n && i < 16; i++) {
        struct pollfd p = {.fd = fd[i], .events = POLLRDHUP};

        if (poll(&p, 1, 0) > 0)
            return true;
    }
    return false;
}

/* The release is the client's first request after its session was closed. */
CASE(test_quiet_release_after_the_session_ended)
{
    hf_lock *a = quiet_hold(w, w->zk->url);

    close_its_session(w);
    COMES(is_cut_off(w->port));
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    world_free_for_all(w, a);
}
