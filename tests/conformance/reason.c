/* Every call and event that reports a loss gives its reason. (tests/faults
 * contains the cases with unreachable servers and stopped processes.) */
#include "conf.h"

#include <poll.h>

/* What a client's callbacks were passed about a loss. */
struct heard {
    int lost, lines;
    char reason[576], line[800];
};

static void hear(void *arg, const hf_event *e)
{
    struct heard *h = arg;

    if (e->type != HF_EVENT_LOST) {
        assert_string_equal(e->reason, "");
        return;
    }
    snprintf(h->reason, sizeof(h->reason), "%s", e->reason);
    h->lost++;
}

static void log_line(void *arg, const char *text)
{
    struct heard *h = arg;

    if (!strstr(text, ": lost the lock \""))
        return;
    snprintf(h->line, sizeof(h->line), "%s", text);
    h->lines++;
}

static hf_client *open_hearing(struct heard *h, int64_t ttl_ms)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_hooks hooks = {.ctx = h, .log = log_line};

    *h = (struct heard){0};
    opt.ttl_ms = ttl_ms;
    opt.hooks = &hooks;
    opt.on_event = hear;
    opt.event_arg = h;
    return conf_open_with(&opt);
}

static void says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* Asserts the reason in each call that returns HF_ELOST with a message. */
static void all_say(hf_lock *lock, const char *reason)
{
    EXPECT_TEXT(HF_ELOST, reason, hf_lock_explain(lock, err));
    EXPECT(HF_ELOST, hf_lock_explain(lock, NULL));
    EXPECT_TEXT(HF_ELOST, reason, hf_lock_renew(lock, 0, err));
    EXPECT_TEXT(HF_ELOST, reason, hf_lock_acquire(lock, NULL, err));
    EXPECT_TEXT(HF_ELOST, reason, hf_lock_downgrade(lock, err));
    EXPECT_TEXT(HF_ELOST, reason, hf_lock_upgrade(lock, err));
    if (conf.caps & HF_CAP_PUT) {
        EXPECT_TEXT(HF_ELOST, reason, hf_lock_put(lock, "k", 1, "v", 1, err));
    }
}

static void releases_say(hf_lock *lock, const char *reason)
{
    hf_error err = HF_ERROR_INIT;

    EXPECT(HF_ELOST, hf_lock_release_nowait(lock, &err));
    says(err.text, reason);
    EXPECT(HF_ELOST, hf_lock_release(lock, &err));
    says(err.text, reason);
    EXPECT(HF_ENOTOWNER, hf_lock_explain(lock, &err));
}

static void events_say(hf_client *c, const struct heard *h, const char *reason)
{
    COMES((hf_client_dispatch(c), h->lost));
    assert_string_equal(h->reason, reason);
    says(h->line, reason);
    assert_int_equal(h->lost, 1);
    assert_int_equal(h->lines, 1);
}

/* The agreed end of a lease is not an error, and the message must not suggest
 * one. */
CONF_CASE(test_reason_fixed_lease, CONF_EACH | CONF_LEASE)
{
    static const char reason[] = "its fixed lease of 300 ms ended";
    static struct heard h;
    hf_client *c = open_hearing(&h, conf_long_ms());
    hf_lock *lock = conf_lock(c, conf_name());
    hf_error err = HF_ERROR_INIT;

    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_explain(lock, &err));
    assert_string_equal(err.text, "");
    conf_shorten(lock, 300);
    COMES(hf_lock_check(lock) == HF_ELOST);
    all_say(lock, reason);
    releases_say(lock, reason);
    events_say(c, &h, reason);
}

/* The release is the first call after the end of the lease. */
CONF_CASE(test_reason_found_by_the_release, CONF_EACH | CONF_LEASE)
{
    static struct heard h;
    hf_client *c = open_hearing(&h, conf_long_ms());
    hf_lock *lock = conf_lock(c, conf_name());
    int64_t taken = wait_now(), deadline = 0;

    OK(conf_take_lease(lock, HF_FOREVER, 150));
    HELD(taken, 150, hf_lock_deadline(lock, &deadline));
    while (wait_now() < deadline)
        ;
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 150 ms ended",
                hf_lock_release(lock, err));
    events_say(c, &h, "its fixed lease of 150 ms ended");
}

CONF_CASE(test_reason_max_hold, CONF_EACH)
{
    hf_lock_options opt = LOCK_OPTIONS(.max_hold_ms = 200);
    static struct heard h;
    hf_client *c = open_hearing(&h, conf_long_ms());
    hf_lock *lock;

    lock = conf_lock_with(c, conf_name(), &opt);
    OK(hf_lock_acquire(lock, NULL, E));
    COMES(hf_lock_check(lock) == HF_ELOST);
    EXPECT_TEXT(HF_ELOST, "max_hold_ms", hf_lock_release(lock, err));
    COMES((hf_client_dispatch(c), h.lost));
    says(h.reason, "max_hold_ms");
}

/* Another client breaks the hold, and the descriptor is the first to report the
 * loss. */
CONF_CASE(test_reason_broken, CONF_EACH | CONF_INSPECT)
{
    static struct heard h;
    hf_client *c = open_hearing(&h, CONF_KEPT_TTL_MS), *other = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(c, name);
    hf_error err = HF_ERROR_INIT;
    struct pollfd p = {.events = POLLIN};

    p.fd = hf_lock_fd(lock);
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_break(other, name, HF_CSTRING, E));
    COMES(poll(&p, 1, 0) == 1);
    EXPECT(HF_ELOST, hf_lock_explain(lock, &err));
    says(err.text, "it is no longer ");
    says(err.text, "broken");
    COMES((hf_client_dispatch(c), h.lost));
    says(h.reason, "it is no longer ");
    all_say(lock, h.reason);
    releases_say(lock, h.reason);
    events_say(c, &h, h.reason);
}

/* A renewal by the program discovers the loss. */
CONF_CASE(test_reason_found_by_the_renewal, CONF_EACH | CONF_INSPECT)
{
    hf_client *c = conf_open(), *other = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(c, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_break(other, name, HF_CSTRING, E));
    EXPECT_TEXT(HF_ELOST, "it is no longer ", hf_lock_renew(lock, 0, err));
    EXPECT_TEXT(HF_ELOST, "it is no longer ", hf_lock_release(lock, err));
}

static void take_and_exit(void *lock)
{
    (void)hf_lock_acquire(lock, NULL, NULL);
}

CONF_CASE(test_reason_exited_thread, CONF_EACH)
{
    static struct heard h;
    hf_client *c = open_hearing(&h, 1000);
    hf_lock *lock = conf_lock(c, conf_name());
    struct conf_thread t;

    conf_thread_start(&t, take_and_exit, lock);
    conf_thread_join(&t);
    COMES((hf_client_dispatch(c), h.lost));
    says(h.reason, "the thread that held it exited");
    says(h.line, h.reason);
    conf_comes_free(lock);
}

/* Two handles of one client lose the lock for different reasons. */
CONF_CASE(test_reason_of_each_owner, CONF_EACH | CONF_LEASE | CONF_INSPECT)
{
    hf_client *c = conf_open_long(), *other = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *two = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_error err = HF_ERROR_INIT;

    OK(conf_take_lease(one, HF_FOREVER, 200));
    OK(hf_lock_timed(two, WAIT_LONG_MS, E));
    OK(hf_break(other, name, HF_CSTRING, E));
    EXPECT(HF_ELOST, hf_lock_renew(two, 0, &err));
    all_say(one, "its fixed lease of 200 ms ended");
    all_say(two, "it is no longer ");
    EXPECT(HF_ELOST, hf_lock_release(two, &err));
    says(err.text, "it is no longer ");
    EXPECT(HF_ELOST, hf_lock_release(one, &err));
    says(err.text, "its fixed lease of 200 ms ended");
}

/* A reader loses its hold and then requests a write hold: the message is about
 * the lost read hold. */
CONF_CASE(test_reason_of_a_reader, CONF_EACH | CONF_RWLOCK | CONF_LEASE)
{
    hf_lock *lock =
        conf_lock_of(conf_open_long(), conf_name(), HF_RWLOCK, 0, 0);
    hf_acquire_options opt = ACQUIRE_OPTIONS(.mode = HF_READ, .lease_ms = 200);

    OK(hf_lock_acquire(lock, &opt, E));
    COMES(hf_lock_check(lock) == HF_ELOST);
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 200 ms ended",
                hf_lock_acquire(lock, &opt, err));
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 200 ms ended",
                hf_lock_acquire(lock, NULL, err));
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 200 ms ended",
                hf_lock_downgrade(lock, err));
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 200 ms ended",
                hf_lock_release(lock, err));
}

/* Each acquire of permits is a separate hold, with a separate reason for its
 * loss. */
CONF_CASE(test_reason_of_permits, CONF_EACH | CONF_SEMAPHORE | CONF_LEASE)
{
    hf_lock *lock =
        conf_lock_of(conf_open_long(), conf_name(), HF_SEMAPHORE, 3, 0);
    hf_acquire_options opt = ACQUIRE_OPTIONS(.lease_ms = 200);
    hf_error err = HF_ERROR_INIT;

    OK(hf_lock_acquire(lock, &opt, E));
    opt.lease_ms = 250;
    OK(hf_lock_acquire(lock, &opt, E));
    COMES(hf_lock_check(lock) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_explain(lock, &err));
    says(err.text, "its fixed lease of 2");
    COMES(hf_lock_release(lock, &err) == HF_ELOST);
    says(err.text, "its fixed lease of 2");
    EXPECT(HF_ELOST, hf_lock_release(lock, &err));
    says(err.text, "its fixed lease of 2");
}

CONF_CASE(test_reason_asynchronous, CONF_EACH | CONF_LEASE)
{
    struct conf_call call = {0};
    static struct heard h;
    hf_client *c = open_hearing(&h, conf_long_ms());
    hf_lock *lock = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE);

    OK(conf_take_lease(lock, HF_FOREVER, 200));
    COMES(hf_lock_check(lock) == HF_ELOST);
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 200 ms ended",
                hf_lock_renew_async(lock, 0, conf_note, &call, err));
    OK(hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    conf_calls_back(c, &call, HF_ELOST);
    EXPECT_TEXT(HF_ELOST, "its fixed lease of 200 ms ended",
                hf_lock_explain(lock, err));
    call = (struct conf_call){0};
    OK(hf_lock_release_async(lock, conf_note, &call, E));
    conf_calls_back(c, &call, HF_ELOST);
    events_say(c, &h, "its fixed lease of 200 ms ended");
}

CONF_CASE(test_reason_codes_of_explain, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    hf_error err = HF_ERROR_INIT;

    EXPECT(HF_EINVAL, hf_lock_explain(NULL, E));
    EXPECT(HF_ENOTOWNER, hf_lock_explain(lock, E));
    OK(hf_lock_acquire(lock, NULL, E));
    err.code = 7;
    strcpy(err.text, "old");
    OK(hf_lock_explain(lock, &err));
    OK(hf_lock_explain(lock, NULL));
    assert_int_equal(err.code, 0);
    assert_string_equal(err.text, "");
    OK(hf_lock_release(lock, E));
    conf_close(c);
    EXPECT(HF_ECLOSED, hf_lock_explain(lock, E));
}
