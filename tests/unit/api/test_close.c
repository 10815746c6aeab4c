/* What hf_close waits for when the server answers late or never. */
#include "../cases.h"
#include "../server_fixture.h"

#define LATE_MS 1500 /* longer than hf_close waits for ended leases */

static hf__time answers_from; /* protected by client->mu */

static void answer_late(hf__time now)
{
    while (server.asked && now >= answers_from)
        answer_one();
}

/* Opens a client whose server grants attempts at once and answers nothing
 * else. */
static hf_client *open_mute(void)
{
    hf_client *c = open_with(NULL);

    hf__mutex_lock(&c->mu);
    server.at_once = server.keeps_releases = true;
    server.answer = HF__GRANTED;
    server.in_advance = answer_late;
    answers_from = HF__NEVER;
    hf__mutex_unlock(&c->mu);
    return c;
}

/* Lets the server answer everything once `ms` have passed. */
static void answer_after(hf_client *c, int64_t ms)
{
    hf__mutex_lock(&c->mu);
    server.answer = HF__DONE;
    answers_from = hf__now() + ms * HF__MS;
    hf__mutex_unlock(&c->mu);
}

static hf_lock *hold(hf_client *c, int64_t ttl_ms, int64_t lease_ms,
                     int64_t max_hold_ms)
{
    hf_lock_options opt =
        LOCK_OPTIONS(.ttl_ms = ttl_ms, .max_hold_ms = max_hold_ms);
    hf_acquire_options how = ACQUIRE_OPTIONS(.lease_ms = lease_ms);
    hf_lock *lock;

    assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, &opt, &lock, NULL), 0);
    assert_int_equal(hf_lock_acquire(lock, &how, NULL), 0);
    return lock;
}

static bool is_asked(hf_client *c, enum hf__op op)
{
    const struct hf__req *req;

    hf__mutex_lock(&c->mu);
    for (req = server.asked; req && req->op != op; req = req->next)
        ;
    hf__mutex_unlock(&c->mu);
    return req != NULL;
}

static void lose(hf_client *c, hf_lock *lock)
{
    assert_true(WAIT_FOR(hf_lock_check(lock) == HF_ELOST));
    /* The hold is lost, but its release is sent nevertheless. */
    assert_true(is_asked(c, HF__RELEASE));
}

static void is_not_waited_for(hf_client *c, hf_lock *lock)
{
    int64_t began = wait_fair();

    assert_int_equal(hf_close(c), HF_EUNKNOWN);
    assert_true(wait_within(began, 5000)); /* the op_timeout is 20 s */
    assert_int_equal(hf_lock_free(lock), 0);
}

CASE(test_close_does_not_wait_for_an_ended_lease)
{
    hf_client *c = open_mute();
    hf_lock *lock = hold(c, 0, 100, 0);

    lose(c, lock);
    is_not_waited_for(c, lock);
}

CASE(test_close_does_not_wait_for_unanswered_renewals)
{
    hf_client *c = open_mute();
    hf_lock *lock = hold(c, 300, 0, 0);

    lose(c, lock);
    assert_true(is_asked(c, HF__RENEW));
    is_not_waited_for(c, lock);
}

/* The release is sent in time but not answered, and the hold's deadline
 * passes. */
CASE(test_close_does_not_wait_for_a_release_that_is_over)
{
    hf_client *c = open_mute();
    hf_lock *lock = hold(c, 0, 100, 0);
    int rc = hf_lock_release_nowait(lock, NULL);

    /* The result is HF_ELOST if this process was stopped for too long. */
    assert_true(rc == 0 || rc == HF_ELOST);
    assert_true(WAIT_FOR(hf__now() > lock->line->queue.lease.until));
    is_not_waited_for(c, lock);
}

/* The server is slow to answer the release, but answers. */
CASE(test_close_hears_that_an_ended_lease_was_let_go)
{
    hf_client *c = open_mute();
    hf_lock *lock = hold(c, 0, 100, 0);

    lose(c, lock);
    answer_after(c, 100);
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(hf_lock_free(lock), 0);
}

static void is_waited_for(hf_client *c, hf_lock *lock)
{
    answer_after(c, LATE_MS);
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(hf_lock_free(lock), 0);
}

CASE(test_close_waits_for_what_is_held)
{
    hf_client *c = open_mute();

    is_waited_for(c, hold(c, 0, 0, 0));
}

/* max_hold has ended the hold for its owner, but the server still keeps it. */
CASE(test_close_waits_for_what_the_server_still_has)
{
    hf_client *c = open_mute();
    hf_lock *lock = hold(c, 0, 0, 100);

    lose(c, lock);
    is_waited_for(c, lock);
}

CASE(test_close_waits_for_an_asynchronous_verb)
{
    hf_client *c = open_mute();
    hf_lock *lock = hold(c, 0, 100, 0);
    struct call call = {0, 0};
    hf_latch *latch;

    lose(c, lock);
    assert_int_equal(hf_latch_new(c, "l", HF_CSTRING, &latch, NULL), 0);
    assert_int_equal(hf_latch_set_async(latch, 1, note_latch, &call, NULL), 0);
    is_waited_for(c, lock);
    assert_int_equal(call.called, 1);
    assert_int_equal(call.result, 0);
    assert_int_equal(hf_latch_free(latch), 0);
}

CASES_MAIN(NULL, NULL);
