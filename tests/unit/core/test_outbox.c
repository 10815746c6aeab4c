/*
 * The core parks requests that a backend cannot send now. They are sent in
 * order, but not after their time limit, and a caller that gives up removes its
 * own request.
 */
#include "../cases.h"
#include "core/watches.h"

#include "../server_fixture.h"

enum { MANY = 8 };

/* State of the test's backend, protected by client->mu: */
static unsigned room;   /* number of requests to accept; others get LATER */
static bool goes_on;    /* advance() reports that requests can be sent */
static bool gives_back; /* advance() reports accepted requests as unsent */
static int refuses_all; /* code with which advance() refuses all requests */
static bool keeps;      /* accepted requests are not answered at once */
static struct hf__req *taken[MANY];
static struct hf__req was[MANY]; /* copies, which outlive the requests */
static size_t taken_len;
static unsigned put_off, abandoned;
static bool gives_back_late; /* abandon() reports a request as unsent */

static int take(struct hf__req *req, int answer)
{
    if (!room) {
        put_off++;
        return HF__LATER;
    }
    room--;
    assert_in_range(taken_len, 0, MANY - 1);
    req->sent_at = hf__now();
    was[taken_len] = *req;
    taken[taken_len++] = req;
    return keeps ? HF__PENDING : answer;
}

static int parked_attempt(void *self, struct hf__req *req)
{
    return take(req, HF__GRANTED);
}

static int parked_release(void *self, struct hf__req *req)
{
    return take(req, HF__DONE);
}

static int parked_abandon(void *self, struct hf__req *req)
{
    if (gives_back_late)
        server.core->unsent(server.client, req->remote->attempt);
    abandoned++;
    return HF__DONE;
}

static int parked_query(void *self, struct hf__query *query)
{
    return take(&query->req, HF__DONE);
}

static void parked_advance(hf__time now)
{
    if (gives_back) {
        while (taken_len)
            server.core->unsent(server.client, taken[--taken_len]);
        gives_back = keeps = false;
    }
    if (!put_off)
        return;
    if (refuses_all) {
        server.core->why(server.client, refuses_all, "go away");
        server.core->refuse(server.client, refuses_all);
    }
    if (goes_on)
        server.core->go_on(server.client);
    goes_on = false;
    refuses_all = 0;
}

static hf__time parked_timeout(void)
{
    return refuses_all ? 0 : HF__NEVER;
}

struct scene {
    hf_client *client;
    hf_lock *locks[3];
    hf_latch *latch;
    struct call calls[3], set;
};

static struct scene *begin(void)
{
    struct scene *s = calloc(1, sizeof(*s));
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    char name[] = "a";

    assert_non_null(s);
    backend.attempt = parked_attempt;
    backend.release = parked_release;
    backend.abandon = parked_abandon;
    backend.query = parked_query;
    goes_on = gives_back = keeps = gives_back_late = false;
    refuses_all = 0;
    room = put_off = abandoned = 0;
    taken_len = 0;
    s->client = open_with(NULL);
    hf__mutex_lock(&s->client->mu); /* the helper thread reads these */
    server.in_advance = parked_advance;
    server.in_timeout = parked_timeout;
    hf__mutex_unlock(&s->client->mu);
    opt.flags = HF_OWNER_HANDLE;
    for (int i = 0; i < 3; i++, name[0]++)
        assert_int_equal(
            hf_lock_new(s->client, name, 1, &opt, &s->locks[i], NULL), 0);
    assert_int_equal(hf_latch_new(s->client, "l", 1, &s->latch, NULL), 0);
    return s;
}

static void end(struct scene *s)
{
    hf__mutex_lock(&s->client->mu);
    room = MANY; /* for the releases */
    taken_len = 0;
    hf__mutex_unlock(&s->client->mu);
    hf_close(s->client);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_lock_free(s->locks[i]), 0);
    assert_int_equal(hf_latch_free(s->latch), 0);
    free(s);
}

static void acquire(struct scene *s, int i)
{
    assert_int_equal(
        hf_lock_acquire_async(s->locks[i], NULL, note_lock, &s->calls[i], NULL),
        0);
}

static void set_latch(struct scene *s)
{
    assert_int_equal(hf_latch_set_async(s->latch, 3, note_latch, &s->set, NULL),
                     0);
}

/* Submits requests in this order: a, the latch, b, c. */
static void ask_four(struct scene *s)
{
    acquire(s, 0);
    set_latch(s);
    acquire(s, 1);
    acquire(s, 2);
}

static void lock(struct scene *s)
{
    hf__mutex_lock(&s->client->mu);
}

/* Unlocks the mutex, and lets the backend act on what the test has set. */
static void unlock(struct scene *s)
{
    server.core->due(s->client, server.core->now());
    hf__mutex_unlock(&s->client->mu);
}

static bool are_taken(struct scene *s, size_t len)
{
    bool are;

    lock(s);
    are = taken_len == len;
    hf__mutex_unlock(&s->client->mu);
    return are;
}

static bool is_of(const struct hf__req *req, const hf_lock *lock)
{
    return req->remote == &lock->line->remote;
}

static void are_in_order(struct scene *s)
{
    lock(s);
    assert_int_equal(taken_len, 4);
    assert_true(is_of(&was[0], s->locks[0]));
    assert_int_equal(was[1].op, HF__LATCH_SET);
    assert_true(is_of(&was[2], s->locks[1]));
    assert_true(is_of(&was[3], s->locks[2]));
    assert_null(s->client->outbox);
    assert_null(s->client->outbox_tail);
    hf__mutex_unlock(&s->client->mu);
}

static void all_are_done(struct scene *s)
{
    for (int i = 0; i < 3; i++) {
        assert_true(WAIT_FOR(is_called(s->client, &s->calls[i])));
        assert_int_equal(s->calls[i].result, 0);
    }
    assert_true(WAIT_FOR(is_called(s->client, &s->set)));
    assert_int_equal(s->set.result, 0);
}

static void with_scene(void (*run)(struct scene *))
{
    struct scene *s = begin();

    run(s);
    end(s);
}

#define SCENE_CASE(fn)                                                         \
    CASE_CALLED(fn, struct scene *s, NULL, NULL, with_scene(fn))

SCENE_CASE(test_parked_go_in_the_order_of_asking)
{
    ask_four(s);
    assert_int_equal(put_off, 4);
    lock(s);
    room = MANY;
    goes_on = true;
    unlock(s);
    all_are_done(s);
    are_in_order(s);
}

/* The backend accepts one request at a time: the others keep their places. */
SCENE_CASE(test_parked_again_keep_their_places)
{
    ask_four(s);
    for (size_t i = 1; i <= 4; i++) {
        lock(s);
        room = 1;
        goes_on = true;
        unlock(s);
        assert_true(WAIT_FOR(are_taken(s, i)));
    }
    all_are_done(s);
    are_in_order(s);
}

/* The connection breaks when two requests are accepted and two are parked,
 * before anything is written: the accepted requests are sent again before the
 * parked requests. */
SCENE_CASE(test_unsent_go_before_those_parked)
{
    keeps = true;
    room = 2;
    ask_four(s);
    assert_int_equal(taken_len, 2);
    lock(s);
    gives_back = goes_on = true;
    room = MANY;
    unlock(s);
    all_are_done(s);
    are_in_order(s);
}

/* The callers of parked requests give up: their requests are never sent. */
SCENE_CASE(test_who_gives_up_is_not_parked_any_more)
{
    ask_four(s);
    assert_int_equal(hf_lock_cancel(s->locks[0]), 0);
    assert_int_equal(hf_latch_cancel(s->latch), 0);
    assert_int_equal(hf_lock_cancel(s->locks[2]), 0);
    assert_true(WAIT_FOR(is_called(s->client, &s->set)));
    assert_int_equal(s->set.result, HF_EUNKNOWN);
    assert_true(WAIT_FOR(is_called(s->client, &s->calls[0])));
    assert_true(WAIT_FOR(is_called(s->client, &s->calls[2])));
    assert_int_equal(s->calls[0].result, HF_ECANCELED);
    lock(s);
    assert_int_equal(abandoned, 2);
    assert_true(is_of(s->client->outbox, s->locks[1]));
    assert_ptr_equal(s->client->outbox, s->client->outbox_tail);
    room = MANY;
    goes_on = true;
    unlock(s);
    assert_true(WAIT_FOR(is_called(s->client, &s->calls[1])));
    assert_int_equal(s->calls[1].result, 0);
    assert_int_equal(taken_len, 1);
}

/* A caller has given up when the backend reports that its request was not sent:
 * the request is not sent again. */
SCENE_CASE(test_unsent_after_its_caller_has_left)
{
    keeps = true;
    room = 2;
    ask_four(s);
    assert_int_equal(was[1].op, HF__LATCH_SET);
    assert_int_equal(hf_latch_cancel(s->latch), 0);
    assert_true(WAIT_FOR(is_called(s->client, &s->set)));
    assert_int_equal(s->set.result, HF_EUNKNOWN);
    lock(s);
    gives_back = goes_on = true;
    room = MANY;
    unlock(s);
    assert_true(WAIT_FOR(is_called(s->client, &s->calls[2])));
    assert_int_equal(taken_len, 3);
    for (int i = 0; i < 3; i++)
        assert_true(is_of(&was[i], s->locks[i]));
}

/* A downgrade takes effect at once; the server is notified when it can be
 * reached. */
SCENE_CASE(test_parked_downgrade_is_sent_after_all)
{
    hf_lock_options opt =
        LOCK_OPTIONS(.kind = HF_RWLOCK, .flags = HF_OWNER_HANDLE);
    hf_lock *rw = NULL;

    assert_int_equal(hf_lock_new(s->client, "rw", 2, &opt, &rw, NULL), 0);
    lock(s);
    room = 1;
    unlock(s);
    assert_int_equal(hf_lock_try(rw, NULL), 0);
    s->client->op_timeout_ms = 20;
    assert_int_equal(hf_lock_downgrade(rw, NULL), HF_EUNKNOWN);
    lock(s);
    assert_int_equal(taken_len, 1);
    room = MANY;
    goes_on = true;
    unlock(s);
    assert_true(WAIT_FOR(are_taken(s, 2)));
    assert_int_equal(was[1].op, HF__DOWNGRADE);
    assert_int_equal(hf_lock_release(rw, NULL), 0);
    assert_int_equal(hf_lock_free(rw), 0);
}

/* A driver finds the connection broken after the core decided to abandon a
 * request, but before the backend is notified: the request is not parked. */
SCENE_CASE(test_unsent_while_it_is_abandoned)
{
    keeps = gives_back_late = true;
    room = 1;
    acquire(s, 0);
    assert_true(are_taken(s, 1));
    assert_int_equal(hf_lock_cancel(s->locks[0]), 0);
    assert_true(WAIT_FOR(is_called(s->client, &s->calls[0])));
    lock(s);
    assert_int_equal(abandoned, 1);
    assert_null(s->client->outbox);
    gives_back_late = keeps = false;
    hf__mutex_unlock(&s->client->mu);
}

/* The time limit of a parked request has passed, but its caller has not noticed
 * yet: the request is not sent. */
SCENE_CASE(test_parked_is_not_sent_after_its_time)
{
    ask_four(s);
    lock(s);
    assert_int_equal(s->client->outbox->next->op, HF__LATCH_SET);
    assert_true(s->client->outbox->next->meant_until != HF__NEVER);
    s->client->outbox->next->meant_until = hf__now();
    room = 3;
    goes_on = true;
    unlock(s);
    assert_true(WAIT_FOR(is_called(s->client, &s->calls[2])));
    assert_true(are_taken(s, 3));
    assert_true(is_of(&was[1], s->locks[1])); /* not the latch's request */
    assert_true(is_of(&was[2], s->locks[2]));
    assert_int_equal(hf_latch_cancel(s->latch), 0);
    assert_true(WAIT_FOR(is_called(s->client, &s->set)));
}

SCENE_CASE(test_refusal_is_for_all_that_are_parked)
{
    ask_four(s);
    lock(s);
    refuses_all = HF_EAUTH;
    unlock(s);
    for (int i = 0; i < 3; i++) {
        assert_true(WAIT_FOR(is_called(s->client, &s->calls[i])));
        assert_int_equal(s->calls[i].result, HF_EAUTH);
    }
    assert_true(WAIT_FOR(is_called(s->client, &s->set)));
    assert_int_equal(s->set.result, HF_EAUTH);
    assert_int_equal(taken_len, 0);
    assert_int_equal(abandoned, 0); /* nothing was left at the server */
}

SCENE_CASE(test_refusal_is_told_in_the_servers_words)
{
    hf_error err;

    refuses_all = HF_EAUTH;
    assert_int_equal(hf_latch_set(s->latch, 3, &err), HF_EAUTH);
    assert_string_equal(err.text, "test: go away");
}

/* A verb whose slot in the backend is NULL fails with HF_ENOTSUP, whatever the
 * capabilities say. */
SCENE_CASE(test_slots_that_are_missing)
{
    hf_error err = HF_ERROR_INIT;

    hf__mutex_lock(&s->client->mu);
    room = MANY;
    backend.query = NULL;
    backend.renew = NULL;
    hf__mutex_unlock(&s->client->mu);
    assert_int_equal(hf_latch_set(s->latch, 3, &err), HF_ENOTSUP);
    assert_string_equal(err.text, "test: it has no such query");
    assert_int_equal(hf_lock_try(s->locks[0], &err), 0);
    assert_int_equal(hf_lock_renew(s->locks[0], 0, &err), HF_ENOTSUP);
    assert_string_equal(err.text, "test: it has no renewals");
    assert_int_equal(hf_lock_release(s->locks[0], &err), 0);
}

static void count_call(void *arg, hf_watch *watch, const char *name, size_t len)
{
    ++*(int *)arg;
}

static void parked_unlisten(void *self, struct hf__listener *on)
{
}

/* A watch was started, but its caller has given up: changes that the server
 * still reports are ignored. */
SCENE_CASE(test_watch_that_nobody_got_is_not_called)
{
    hf_watch *w = NULL;
    int calls = 0;

    lock(s);
    backend.unlisten = parked_unlisten;
    keeps = true;
    room = 1;
    unlock(s);
    s->client->op_timeout_ms = 20;
    assert_int_equal(
        hf_watch_new(s->client, "w", 1, 0, count_call, &calls, &w, NULL),
        HF_EUNKNOWN);
    assert_null(w);
    lock(s);
    assert_int_equal(was[0].op, HF__LISTEN);
    server.core->changed(server.client,
                         ((struct hf__query *)taken[0])->listener, NULL, 0);
    unlock(s);
    assert_int_equal(hf_client_dispatch(s->client), 0);
    assert_int_equal(calls, 0);
}

/* Requests that are parked when the client is closed end with an unknown
 * result, and nothing refers to them later. */
CASE(test_close_ends_what_is_parked)
{
    struct scene *s = begin();

    ask_four(s);
    s->client->op_timeout_ms = 100; /* how long hf_close() waits */
    assert_int_equal(hf_close(s->client), HF_EUNKNOWN);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s->calls[i].called, 1);
    assert_int_equal(s->set.called, 1);
    assert_int_equal(s->set.result, HF_EUNKNOWN);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_lock_free(s->locks[i]), 0);
    assert_int_equal(hf_latch_free(s->latch), 0);
    free(s);
}

CASES_MAIN(NULL, NULL);
