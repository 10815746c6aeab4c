/* Reasons of a loss, with a test backend: the reason of an earlier loss stays
 * the same, whatever happens later. */
#include "../cases.h"
#include "core/loss_reason.h"

#include "../server_fixture.h"

enum { TTL_MS = 200 };

static void trouble(hf_client *c, const char *text)
{
    hf__mutex_lock(&c->mu);
    server.core->trouble(c, text);
    hf__mutex_unlock(&c->mu);
}

/* Returns a held lock with its own name: the server grants it at once and does
 * not answer renewals. */
static hf_lock *held(hf_client *c, const char *name, int64_t ttl_ms)
{
    hf_lock_options opt = LOCK_OPTIONS(.ttl_ms = ttl_ms);
    hf_lock *lock;

    assert_int_equal(hf_lock_new(c, name, HF_CSTRING, &opt, &lock, NULL), 0);
    server.at_once = true;
    server.answer = HF__GRANTED;
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    return lock;
}

static void loses(hf_lock *lock, hf_error *err)
{
    assert_true(WAIT_FOR(hf_lock_check(lock) == HF_ELOST));
    assert_int_equal(hf_lock_explain(lock, err), HF_ELOST);
}

static void free_lost(hf_lock *lock, const char *text)
{
    hf_error err = HF_ERROR_INIT;

    assert_int_equal(hf_lock_release(lock, &err), HF_ELOST);
    assert_string_equal(err.text, text);
    assert_int_equal(hf_lock_free(lock), 0);
}

static void end(hf_client *c)
{
    let_answer(c, 1000, HF_EUNKNOWN); /* the result of renewals */
    assert_int_equal(hf_close(c), 0);
}

static void says(const hf_error *err, const char *words)
{
    if (!strstr(err->text, words))
        fail_msg("\"%s\" does not say \"%s\"", err->text, words);
}

static void with_scene(void (*run)(hf_client *))
{
    hf_client *c = open_with(NULL);

    run(c);
    end(c);
}

#define SCENE_CASE(fn) CASE_CALLED(fn, hf_client *c, NULL, NULL, with_scene(fn))

/* Holds are lost in two outages. The error may change during an outage. */
SCENE_CASE(test_reason_of_each_outage)
{
    hf_error one = HF_ERROR_INIT, two = HF_ERROR_INIT, three = HF_ERROR_INIT;
    hf_lock *a, *b, *d;

    trouble(c, "here: broken pipe");
    trouble(c, "here: refused");
    a = held(c, "a", TTL_MS);
    loses(a, &one);
    says(&one, "the server could not be used since ");
    says(&one, " (here: refused)");
    trouble(c, "here: timed out");
    b = held(c, "b", TTL_MS);
    loses(b, &two);
    says(&two, "here: timed out");
    trouble(c, NULL);
    trouble(c, "there: gone");
    d = held(c, "d", TTL_MS);
    loses(d, &three);
    says(&three, "there: gone");
    trouble(c, NULL);
    free_lost(a, one.text);
    free_lost(b, two.text);
    free_lost(d, three.text);
}

/* The client keeps only a few notes. Nevertheless the reason of an earlier loss
 * never quotes an error of a later outage. */
SCENE_CASE(test_reason_after_many_outages)
{
    hf_error first = HF_ERROR_INIT, last = HF_ERROR_INIT;
    hf_lock *a, *b;
    char text[32];

    trouble(c, "here: refused");
    a = held(c, "a", TTL_MS);
    loses(a, &first);
    for (int i = 0; i < 3 * HF__NOTES; i++) {
        snprintf(text, sizeof(text), "there: error %d", i);
        trouble(c, NULL);
        trouble(c, text);
    }
    b = held(c, "b", TTL_MS);
    loses(b, &last);
    says(&last, text);
    assert_int_equal(hf_lock_release(a, &first), HF_ELOST);
    says(&first, "lost the lock \"a\": ");
    assert_null(strstr(first.text, "there"));
    assert_int_equal(hf_lock_free(a), 0);
    free_lost(b, last.text);
}

/* During one outage, errors that explain no loss do not evict the error that
 * explains one. */
SCENE_CASE(test_reason_of_a_long_outage)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *a;
    char text[32];

    trouble(c, "here: refused");
    a = held(c, "a", TTL_MS);
    loses(a, &err);
    says(&err, "here: refused");
    for (int i = 0; i < 3 * HF__NOTES; i++) {
        snprintf(text, sizeof(text), "here: error %d", i);
        trouble(c, text);
    }
    free_lost(a, err.text);
}

/* The server refuses renewals. */
SCENE_CASE(test_reason_refused)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *a = held(c, "a", 4000);

    hf__mutex_lock(&c->mu);
    server.core->why(c, HF_EAUTH, "NOPERM this user");
    hf__mutex_unlock(&c->mu);
    let_answer(c, 1000, HF_EAUTH);
    assert_true(WAIT_FOR(hf_lock_explain(a, &err) != 0 || err.text[0]));
    says(&err, "the server refused to renew it (NOPERM this user)");
    loses(a, &err);
    says(&err, "the server refused to renew it (NOPERM this user)");
    free_lost(a, err.text);
}

/* The explanation of a loss is kept, however often renewals are refused, and
 * with whatever messages. */
SCENE_CASE(test_reason_is_not_evicted_by_refusals)
{
    hf_error err = HF_ERROR_INIT, word = {.code = HF_EAUTH};
    hf_lock *a;

    trouble(c, "here: refused");
    a = held(c, "a", TTL_MS);
    loses(a, &err);
    says(&err, "here: refused");
    trouble(c, NULL);
    for (int i = 0; i < 3 * HF__NOTES; i++) {
        memset(word.text, 'x', sizeof(word.text) - 1);
        hf__note_refusal(c, HF_EAUTH, &word);
        snprintf(word.text, sizeof(word.text), "test: refusal %d", i);
        hf__note_refusal(c, HF_EAUTH, &word);
    }
    free_lost(a, err.text);
}

/* Renewals are not answered, and the backend reports no error. */
SCENE_CASE(test_reason_unknown)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *a = held(c, "a", 1000);

    loses(a, &err);
    if (!strstr(err.text, "answered no renewal before its deadline"))
        says(&err, "stopped or suspended"); /* if this process was stopped */
    free_lost(a, err.text);
}

static hf__time first_granted; /* protected by client->mu */

/* Grants the first lock at once, and the second one when the first is lost. */
static void grant_in_turn(hf__time now)
{
    if (!server.asked || server.asked->op != HF__ATTEMPT ||
        (first_granted && now < first_granted + TTL_MS * HF__MS))
        return;
    first_granted = now;
    server.answer = HF__GRANTED;
    answer_one();
}

/* One lock is lost while hf_lock_acquire_all() waits for the other. */
SCENE_CASE(test_reason_is_told_by_acquire_all)
{
    hf_lock_options opt = LOCK_OPTIONS(.max_hold_ms = TTL_MS);
    hf_error err = HF_ERROR_INIT;
    hf_part part[2] = {{0}, {0}};

    assert_int_equal(hf_lock_new(c, "a", 1, &opt, &part[0].lock, NULL), 0);
    assert_int_equal(hf_lock_new(c, "b", 1, NULL, &part[1].lock, NULL), 0);
    hf__mutex_lock(&c->mu);
    first_granted = 0;
    server.in_advance = grant_in_turn;
    hf__mutex_unlock(&c->mu);
    assert_int_equal(hf_lock_acquire_all(part, 2, NULL, &err), HF_ELOST);
    assert_string_equal(err.text,
                        "lost the lock \"a\": it was held for max_hold_ms, "
                        "and no hold lasts longer");
    assert_int_equal(server.released, 2);
    assert_int_equal(hf_lock_free(part[0].lock), 0);
    assert_int_equal(hf_lock_free(part[1].lock), 0);
}

struct renewer {
    hf_lock *lock;
    hf_error err;
    int rc;
};

static void *renew(void *arg)
{
    struct renewer *r = arg;

    r->rc = hf_lock_renew(r->lock, 0, &r->err);
    return NULL;
}

static bool is_asked(hf_client *c)
{
    bool asked;

    hf__mutex_lock(&c->mu);
    asked = server.asked != NULL;
    hf__mutex_unlock(&c->mu);
    return asked;
}

/* The server answers a renewal after another thread has released the hold. The
 * result must not report the loss of an earlier hold. */
SCENE_CASE(test_reason_is_not_that_of_an_earlier_hold)
{
    hf_acquire_options fixed = ACQUIRE_OPTIONS(.lease_ms = TTL_MS);
    hf_lock_options opt = LOCK_OPTIONS(.flags = HF_OWNER_HANDLE);
    struct renewer r = {.err = HF_ERROR_INIT};
    pthread_t t;

    assert_int_equal(hf_lock_new(c, "a", 1, &opt, &r.lock, NULL), 0);
    server.at_once = true;
    server.answer = HF__GRANTED;
    assert_int_equal(hf_lock_acquire(r.lock, &fixed, NULL), 0);
    loses(r.lock, &r.err);
    says(&r.err, "its fixed lease of 200 ms ended");
    assert_int_equal(hf_lock_release(r.lock, NULL), HF_ELOST);
    assert_int_equal(hf_lock_acquire(r.lock, NULL, NULL), 0);
    assert_int_equal(pthread_create(&t, NULL, renew, &r), 0);
    assert_true(WAIT_FOR(is_asked(c)));
    assert_int_equal(hf_lock_release(r.lock, NULL), 0);
    let_answer(c, 1, HF_ENOTOWNER);
    pthread_join(t, NULL);
    assert_int_equal(r.rc, HF_ELOST);
    says(&r.err, "lost the lock \"a\": it is no longer held");
    assert_int_equal(hf_lock_free(r.lock), 0);
}

/* A message with a long name and a long error is cut off, which is why it
 * begins with the essential part. */
SCENE_CASE(test_reason_of_any_length)
{
    hf_error err = HF_ERROR_INIT;
    char name[HF_NAME_MAX + 1], text[300];
    hf_lock *a;

    memset(name, 'n', HF_NAME_MAX);
    name[HF_NAME_MAX] = '\0';
    memset(text, 't', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    trouble(c, text);
    a = held(c, name, TTL_MS);
    loses(a, &err);
    says(&err, "nnn...\": the server could not be used since ");
    assert_true(strlen(err.text) < sizeof(err.text));
    free_lost(a, err.text);
}

CASES_MAIN(NULL, NULL);
