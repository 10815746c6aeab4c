/* The reason for the loss of a hold, on any server, in every message that
 * reports it. */
#include "any_faults.h"

#include "../../lib/proc.h"

#include <time.h>

GROUP("loss");

enum {
    TTL_MS = 5000,   /* long enough for a machine that stalls */
    SHORT_MS = 1000, /* the lease of a process that is stopped */
};

static void pass(int64_t ms)
{
    int64_t began = wait_now();

    while (wait_ms_since(began) < ms)
        wait_tick();
}

static void take(struct world *w, hf_lock *lock)
{
    OK(hf_lock_timed(lock, WAIT_LONG_MS, &w->err));
}

/* Parses the time in "since 2026-11-16 04:21:57 UTC". */
static int64_t time_in(const char *text)
{
    const char *since = strstr(text, "since ");
    struct tm tm = {0};

    assert_non_null(since);
    since = strptime(since + 6, "%Y-%m-%d %H:%M:%S", &tm);
    assert_non_null(since);
    assert_memory_equal(since, " UTC", 4);
    return timegm(&tm);
}

static void names_the_proxy(const struct world *w, const char *text)
{
    expect_words(text, text_of("127.0.0.1:%d", proxy_port(w->proxy)));
}

static const char unreachable[] = "the server could not be used since ";

/* The server is unreachable and then returns: the reason stays the same. */
CASE(test_loss_names_the_error_and_since_when)
{
    hf_lock *a = world_far(w, TTL_MS, 1000), *b = world_near(w);
    hf_error err = HF_ERROR_INIT;
    int64_t began;

    take(w, a);
    OK(hf_lock_explain(a, &err));
    assert_string_equal(err.text, "");
    began = time(NULL);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    /* hf_lock_explain() reports the connection's error even before the hold is
     * lost. */
    COMES(hf_lock_explain(a, &err) != 0 || err.text[0]);
    expect_words(err.text, unreachable);
    assert_true(time_in(err.text) >= began - 1);
    assert_true(time_in(err.text) <= time(NULL) + 1);
    names_the_proxy(w, err.text);
    take(w, b);
    world_heal(w);
    world_loses(w, 0, unreachable);
    names_the_proxy(w, w->ears[0].reason);
    OK(hf_lock_release(b, NULL));
    world_is_clean(w);
    /* The next hold begins without a reason for a loss. */
    take(w, a);
    OK(hf_lock_explain(a, &err));
    assert_string_equal(err.text, "");
    OK(hf_lock_release(a, NULL));
}

/* The server does not answer, and no error reports that it is down. */
CASE(test_loss_by_silence_says_so)
{
    hf_lock *a = world_far(w, TTL_MS, 1000);

    take(w, a);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    world_loses(w, 0, unreachable);
    names_the_proxy(w, w->ears[0].reason);
    world_heal(w);
}

/* After the loss there is no request for which hf_close() must wait. */
CASE(test_loss_leaves_close_nothing_to_wait_for)
{
    enum { OP_MS = 15000 };
    hf_lock *a = world_far(w, TTL_MS, OP_MS);
    int64_t began;

    take(w, a);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    COMES(hf_lock_check(a) == HF_ELOST);
    began = wait_fair();
    hf_close(w->clients[0]);
    w->clients[0] = NULL;
    assert_true(wait_within(began, 2000));
    world_heal(w);
}

static int take_away(struct world *w)
{
    return any_faults.take_away ? any_faults.take_away(w)
                                : hf_break(w->clients[1], "n", 1, &w->err);
}

CASE(test_loss_by_break_says_so)
{
    hf_lock *a = world_lock(w, w->near_url, TTL_MS, 5000, HF_FAIR_DEFAULT);

    world_near(w);
    take(w, a);
    assert_int_equal(take_away(w), 0);
    world_loses(w, 0, "it is no longer ");
    expect_words(w->ears[0].reason, "broken");
}

/* Another client has broken the hold, and the release is the first call to find
 * out. */
static void found_by_the_release(struct world *w, bool is_quiet)
{
    hf_lock *a;

    w->is_quiet = is_quiet;
    a = world_near(w);
    world_near(w);
    take(w, a);
    assert_int_equal(take_away(w), 0);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    if (!strstr(w->err.text, "when the release arrived") &&
        !strstr(w->err.text, "taken away"))
        fail_msg("%s", w->err.text);
}

CASE_IS(test_loss_found_by_the_release_says_so, found_by_the_release(w, false))

CASE_IS(test_loss_found_by_a_quiet_release_says_so,
        found_by_the_release(w, true))

void any_puppet(struct world *w, struct proc *p, int64_t ttl_ms)
{
    struct proc_cmd open = {.op = PROC_OPEN, .ttl_ms = ttl_ms};
    struct proc_cmd new = {.op = PROC_NEW, .name = "n", .name_len = 1};
    struct proc_cmd take = {.op = PROC_TAKE, .wait_ms = WAIT_LONG_MS};
    struct proc_reply r;

    snprintf(open.text, sizeof(open.text), "%s", w->near_url);
    OK(proc_start(p));
    OK(proc_do(p, &open, &r));
    OK(proc_do(p, &new, &r));
    OK(proc_do(p, &take, &r));
    assert_int_equal(r.rc, 0);
}

/* The holder is stopped until another client has the lock. The holder's release
 * runs as soon as the process continues, perhaps before its other threads. */
CASE(test_loss_while_stopped_says_so)
{
    struct proc_cmd give = {.op = PROC_GIVE};
    hf_lock *b = world_near(w);
    struct proc_reply r;
    struct proc p;

    for (int i = 0; i < 3; i++) {
        any_puppet(w, &p, SHORT_MS);
        OK(proc_stop(&p));
        OK(proc_send(&p, &give));
        take(w, b);
        pass(500); /* a renewal may have been in flight */
        OK(proc_continue(&p));
        OK(proc_recv(&p, &r, WAIT_LONG_MS));
        assert_int_equal(r.rc, HF_ELOST);
        if (!strstr(r.err.text, "while this process was stopped"))
            fail_msg("%s", r.err.text);
        OK(hf_lock_release(b, NULL));
        OK(proc_end(&p));
    }
}

CASE(test_loss_while_both_are_stopped_says_so)
{
    struct proc_cmd give = {.op = PROC_GIVE};
    struct proc_reply r;
    struct proc p;

    any_puppet(w, &p, SHORT_MS);
    OK(server_stop(w->process));
    OK(proc_stop(&p));
    pass(2 * SHORT_MS + 500);
    OK(proc_send(&p, &give));
    OK(proc_continue(&p));
    OK(proc_recv(&p, &r, WAIT_LONG_MS));
    OK(server_continue(w->process));
    assert_int_equal(r.rc, HF_ELOST);
    if (!strstr(r.err.text, "while this process was stopped"))
        fail_msg("%s", r.err.text);
    OK(proc_end(&p));
}

void any_holder_stopped(struct world *w, int64_t ttl_ms, int64_t within_ms)
{
    static const enum proc_op late[] = {PROC_RENEW, PROC_CHECK, PROC_GIVE};
    hf_lock *b = world_near(w);
    struct proc_reply r;
    struct taker *t;
    struct proc p;

    any_puppet(w, &p, ttl_ms);
    t = taker_start(w, b, WAIT_LONG_MS);
    COMES(w->server->is_waited_for(w));
    OK(proc_stop(&p));
    taker_has_it(t, within_ms);
    OK(proc_continue(&p));
    for (size_t i = 0; i < sizeof(late) / sizeof(*late); i++) {
        OK(proc_do(&p, &(struct proc_cmd){.op = late[i]}, &r));
        EXPECT(HF_ELOST, r.rc);
    }
    assert_int_equal(w->server->left(w), 1);
    EXPECT(HF_ENOTOWNER, hf_lock_check(b)); /* the taker's thread holds it */
    taker_gives(t);
    OK(proc_end(&p));
}

void any_restart_while_acquiring(struct world *w, hf_lock *a, int64_t down_ms,
                                 int64_t within_ms)
{
    struct taker *t;

    world_free_for_all(w, a);
    server_kill(w->process);
    t = taker_start(w, a, 60000);
    assert_true(NEVER_MS(taker_back(t), down_ms));
    OK(server_again(w->process));
    taker_gets_it(t, within_ms);
}

void any_outage_is_two_lines(struct world *w)
{
    hf_lock *a = world_lock(w, w->near_url, 30000, 1000, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
    assert_int_equal(world_lines(w, 0), 0);
    server_kill(w->process);
    /* Each of these acquires tries to connect several times, but the outage is
     * logged only once. */
    for (int i = 0; i < 3; i++)
        EXPECT(HF_EBACKEND, hf_lock_timed(a, 5000, &w->err));
    assert_int_equal(world_lines(w, 0), 1);
    OK(server_again(w->process));
    COMES(hf_lock_timed(a, 1000, NULL) == 0);
    assert_int_equal(world_lines(w, 0), 2);
    OK(hf_lock_release(a, NULL));
}
