/*
 * Which thread runs a backend, also while the driver is stopped; what becomes
 * of answers that arrive late; and which ready descriptors the backend is
 * notified of.
 */
#include "../cases.h"
#include "core/wakeup.h"
#include "loop/driver.h"
#include "policy/lease.h"

#include "../server_fixture.h"

#include <signal.h>
#include <sys/epoll.h>

static uint32_t in_handler, handler_may_return; /* atomic */

static void stand(int sig)
{
    __atomic_store_n(&in_handler, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&handler_may_return, __ATOMIC_SEQ_CST))
        wait_tick();
}

static struct hf__remote *to_ring; /* protected by client->mu */

static void ring_once(hf__time now)
{
    if (to_ring)
        server.core->bell(server.client, to_ring);
    to_ring = NULL;
}

static bool is_driven(hf_client *c, bool followed)
{
    bool driven;

    hf__mutex_lock(&c->mu);
    driven = c->driven && !c->helper_drives && !c->under_way &&
             (c->followers != NULL) == followed;
    hf__mutex_unlock(&c->mu);
    return driven;
}

static hf__time helper_sleeps_until(hf_client *c)
{
    hf__time until;

    hf__mutex_lock(&c->mu);
    until = c->helper_until;
    hf__mutex_unlock(&c->mu);
    return until;
}

static void helper_looks(hf_client *c)
{
    hf__mutex_lock(&c->mu);
    hf__helper_due_locked(c, 0);
    hf__mutex_unlock(&c->mu);
    assert_true(WAIT_FOR(helper_sleeps_until(c)));
}

static void wait_behind(hf_client *c, struct waiter *w, pthread_t *t,
                        bool follows)
{
    assert_int_equal(pthread_create(t, NULL, wait_for_it, w), 0);
    assert_true(WAIT_FOR(is_queued(w->lock)));
    assert_true(WAIT_FOR(is_driven(c, follows)));
}

CASE(test_driver_bell_is_heard_beside_a_stopped_driver)
{
    hf_client *c = open_at_once(HF__QUEUED);
    struct waiter w[2] = {
        {make_lock(c, "m", HF_MUTEX, HF_OWNER_HANDLE, 0), HF_CANCEL_INIT, 0},
        {make_lock(c, "n", HF_MUTEX, HF_OWNER_HANDLE, 0), HF_CANCEL_INIT, 0}};
    struct sigaction stop = {.sa_handler = stand}, old;
    pthread_t t[2];

    assert_int_equal(sigaction(SIGUSR1, &stop, &old), 0);
    wait_behind(c, &w[0], &t[0], false);
    wait_behind(c, &w[1], &t[1], true);
    assert_int_equal(pthread_kill(t[0], SIGUSR1), 0);
    assert_true(WAIT_FOR(__atomic_load_n(&in_handler, __ATOMIC_SEQ_CST)));
    helper_looks(c);
    assert_true(helper_sleeps_until(c) <= hf__now() + 2000 * HF__MS);
    hf__mutex_lock(&c->mu); /* only advance() reports the bell */
    server.answer = HF__GRANTED;
    server.in_advance = ring_once;
    to_ring = &w[1].lock->line->remote;
    hf__mutex_unlock(&c->mu);
    helper_looks(c); /* earlier than the helper thread would look by itself */
    pthread_join(t[1], NULL);
    assert_int_equal(w[1].rc, 0);
    __atomic_store_n(&handler_may_return, 1, __ATOMIC_SEQ_CST);
    hf_cancel_fire(&w[0].cancel);
    pthread_join(t[0], NULL);
    assert_int_equal(w[0].rc, HF_ECANCELED);
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(hf_lock_release(w[1].lock, NULL), 0);
    assert_int_equal(hf_lock_free(w[0].lock), 0);
    assert_int_equal(hf_lock_free(w[1].lock), 0);
    assert_int_equal(hf_close(c), 0);
}

static void *release_both(void *parts)
{
    return (void *)(intptr_t)hf_lock_release_all(parts, 2, NULL);
}

static bool are_asked(hf_client *c, int releases)
{
    hf__mutex_lock(&c->mu);
    for (const struct hf__req *req = server.asked; req; req = req->next)
        releases -= req->op == HF__RELEASE;
    hf__mutex_unlock(&c->mu);
    return !releases;
}

/* A release that is not answered does not delay another one. */
CASE(test_driver_release_all_asks_before_it_waits)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_part parts[2] = {
        {.lock = make_lock(c, "m", HF_MUTEX, HF_OWNER_HANDLE, 0)},
        {.lock = make_lock(c, "n", HF_MUTEX, HF_OWNER_HANDLE, 0)}};
    pthread_t t;
    void *rc;

    assert_int_equal(hf_lock_acquire_all(parts, 2, NULL, NULL), 0);
    hf__mutex_lock(&c->mu);
    server.keeps_releases = true;
    hf__mutex_unlock(&c->mu);
    assert_int_equal(pthread_create(&t, NULL, release_both, parts), 0);
    assert_true(WAIT_FOR_MS(are_asked(c, 2), 5000));
    assert_int_equal(hf_lock_free(parts[0].lock), HF_EBUSY);
    let_answer(c, 2, HF__DONE);
    pthread_join(t, &rc);
    assert_null(rc);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_lock_free(parts[i].lock), 0);
    assert_int_equal(hf_close(c), 0);
}

/* Grants the first attempt. The lease of the grant ends after the driver has
 * read its clock, but before the driver handles the grant. */
static void answer_too_late(hf__time now)
{
    struct hf__req *req = server.asked;
    hf__time end = now + 5 * HF__MS;

    if (!req || req->op != HF__ATTEMPT)
        return;
    server.in_advance = NULL;
    server.asked = req->next;
    req->result = HF__GRANTED;
    req->sent_at =
        end + hf__lease_margin(req->lease_ms) - req->lease_ms * HF__MS;
    server.core->done(server.client, req);
    while (hf__now() <= end)
        ;
}

CASE(test_driver_grant_that_is_over_when_it_is_read_is_none)
{
    hf_client *c = open_with(NULL);
    hf_lock *lock = make_lock(c, "n", HF_MUTEX, 0, 0);

    hf__mutex_lock(&c->mu);
    server.in_advance = answer_too_late;
    server.answers = 2;
    server.answer = HF__GRANTED;
    hf__mutex_unlock(&c->mu);
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    assert_int_equal(server.released, 1); /* the expired one */
    assert_int_equal(hf_lock_check(lock), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

static hf__time answers_from; /* protected by client->mu */

static void answer_at_last(hf__time now)
{
    if (now < answers_from || !server.asked)
        return;
    server.answer = HF__GRANTED;
    answer_one();
}

/* An answer that is read at the very moment when the wait for it times out is
 * accepted. */
CASE(test_driver_answer_that_is_there_is_no_silence)
{
    hf_client *c = open_with(NULL);
    hf_lock *lock = make_lock(c, "n", HF_MUTEX, HF_OWNER_HANDLE, 0);
    struct call call = {0, 0};

    hf__mutex_lock(&c->mu);
    c->op_timeout_ms = 300;
    answers_from = HF__NEVER;
    server.in_advance = answer_at_last;
    hf__mutex_unlock(&c->mu);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, note_lock, &call, NULL),
                     0);
    hf__line_lock(lock->line);
    hf__mutex_lock(&c->mu);
    answers_from = lock->line->queue.lease.poll_at;
    hf__mutex_unlock(&c->mu);
    hf__line_unlock(lock->line);
    assert_true(WAIT_FOR(is_called(c, &call)));
    assert_int_equal(call.result, 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

enum { TAGS = 2 };

/* Protected by client->mu: */
static struct {
    int to[TAGS];   /* the other end of the descriptor that each tag watches */
    int from[TAGS]; /* -1: not watched */
    char order[64]; /* "1": ready() with that tag; "a": advance() */
    bool comes_late;
} ends;

static void note_step(char step)
{
    size_t len = strlen(ends.order);

    if (len + 1 < sizeof(ends.order))
        ends.order[len] = step;
}

static void note_ready(uint32_t tag, uint32_t events)
{
    char byte;

    if (tag >= TAGS || events != EPOLLIN)
        note_step('?');
    else if (read(ends.from[tag], &byte, 1) == 1)
        note_step((char)('0' + tag));
}

static void note_advance(hf__time now)
{
    note_step('a');
}

/* Makes an answer arrive late: writes it, and returns a time-out that has
 * passed, as if this thread had been stopped from before the answer came until
 * after the time-out. */
static hf__time timeout_and_answer(void)
{
    if (!ends.comes_late || !strchr(ends.order, '0'))
        return HF__NEVER;
    ends.comes_late = false;
    (void)!write(ends.to[1], "x", 1);
    return 0;
}

static bool is_helper_asleep(hf_client *c)
{
    bool asleep;

    hf__mutex_lock(&c->mu);
    asleep = c->helper_until == HF__NEVER;
    hf__mutex_unlock(&c->mu);
    return asleep;
}

/* Opens a client that only this thread drives; no other thread runs the
 * backend. */
static hf_client *open_with_ends(void)
{
    hf_client *c = open_with(NULL);
    int fds[2];

    memset(&ends, 0, sizeof(ends));
    hf__mutex_lock(&c->mu);
    server.in_ready = note_ready;
    server.in_advance = note_advance;
    server.in_timeout = timeout_and_answer;
    for (uint32_t i = 0; i < TAGS; i++) {
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        ends.from[i] = fds[0];
        ends.to[i] = fds[1];
        assert_int_equal(server.core->watch(c, fds[0], EPOLLIN, i), 0);
    }
    hf__mutex_unlock(&c->mu);
    assert_true(hf__driver_take(c));
    assert_true(WAIT_FOR(is_helper_asleep(c)));
    return c;
}

static void close_with_ends(hf_client *c)
{
    hf__driver_give(c);
    hf__mutex_lock(&c->mu);
    for (uint32_t i = 0; i < TAGS; i++)
        assert_int_equal(server.core->watch(c, ends.from[i], 0, i), 0);
    hf__mutex_unlock(&c->mu);
    assert_int_equal(hf_close(c), 0);
    for (uint32_t i = 0; i < TAGS; i++) {
        close(ends.from[i]);
        close(ends.to[i]);
    }
}

/* A driver passes to the backend the tag of each descriptor that is ready, and
 * so does a thread that runs the backend alongside the driver. */
CASE(test_driver_backend_hears_what_is_ready_by_its_tag)
{
    hf_client *c = open_with_ends();

    (void)!write(ends.to[1], "x", 1);
    hf__driver_round(c, NULL, HF__NEVER);
    hf__mutex_lock(&c->mu);
    assert_string_equal(ends.order, "1a");
    (void)!write(ends.to[0], "x", 1);
    hf__driver_move_locked(c, hf__now());
    assert_string_equal(ends.order, "1a0a");
    hf__mutex_unlock(&c->mu);
    close_with_ends(c);
}

CASE(test_driver_what_came_in_time_is_told_before_what_is_due)
{
    hf_client *c = open_with_ends();

    hf__mutex_lock(&c->mu);
    ends.comes_late = true;
    hf__mutex_unlock(&c->mu);
    (void)!write(ends.to[0], "x", 1);
    hf__driver_round(c, NULL, HF__NEVER);
    hf__mutex_lock(&c->mu);
    assert_string_equal(ends.order, "01a");
    hf__mutex_unlock(&c->mu);
    close_with_ends(c);
}

CASES_MAIN(NULL, NULL);
