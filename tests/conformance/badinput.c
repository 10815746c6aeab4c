/* Bad input: each error returns its own code and a message that says what was
 * wrong. */
#include "conf.h"

CONF_CASE(test_bad_urls, 0)
{
    hf_client *c = (hf_client *)&c;

    EXPECT(HF_EINVAL, hf_open(conf.url, NULL, NULL, E));
    EXPECT_TEXT(HF_EINVAL, "NULL", hf_open(NULL, NULL, &c, err));
    assert_null(c);
    EXPECT_TEXT(HF_EINVAL, "URL", hf_open("", NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "URL", hf_open("nonsense", NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "gopher", hf_open("gopher://x", NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "shm", hf_open("gopher://x", NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "redis://", hf_open("gopher://x", NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL,
                "consul:", hf_open("consul://a:1,b:2/c", NULL, &c, err));
    assert_null(c);
    OK(hf_open(conf.url, NULL, &c, NULL)); /* the error argument may be NULL */
    OK(hf_close(c));
    EXPECT(HF_EINVAL, hf_open("gopher://x", NULL, &c, NULL));
}

CONF_CASE(test_bad_url_options, 0)
{
    static const char *const bad[] = {
        "ttl=",
        "ttl=0",
        "ttl=-1s",
        "ttl=abc",
        "ttl=5y",
        "ttl=1e3",
        "ttl=999999999999d",
        "ttl=200d",
        "ttl=9ms",
        "ttl=0.009",
        "op_timeout=0",
        "op_timeout=x",
        "connect_timeout=0",
        "connect_timeout=-5",
        "fair=maybe",
        "fair=",
        "ttl=1s&ttl=2s",
        "ttl",
        "=5",
        "password_file=/nonexistent",
    };
    hf_client *c = (hf_client *)&c;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        EXPECT(HF_EINVAL, hf_open(conf_url_with(bad[i]), NULL, &c, E));
        assert_null(c);
    }
    EXPECT_TEXT(HF_EINVAL, "colour",
                hf_open(conf_url_with("colour=red"), NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "op_timeout", /* lists the known options */
                hf_open(conf_url_with("colour=red"), NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "10ms to 2147483647ms",
                hf_open(conf_url_with("ttl=1ms"), NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "1ms to 2147483647ms",
                hf_open(conf_url_with("op_timeout=0"), NULL, &c, err));
    EXPECT_TEXT(HF_EINVAL, "ttl=abc",
                hf_open(conf_url_with("ttl=abc"), NULL, &c, err));
}

CONF_CASE(test_bad_client_options, 0)
{
    hf_client_options opt = CLIENT_OPTIONS(.size = 0);
    hf_client *c = (hf_client *)&c;

    EXPECT_TEXT(HF_EINVAL, "HF_CLIENT_OPTIONS_INIT",
                hf_open(conf.url, &opt, &c, err));
    assert_null(c);
    opt = (hf_client_options)HF_CLIENT_OPTIONS_INIT;
    opt.ttl_ms = -1;
    EXPECT_TEXT(HF_EINVAL, "ttl", hf_open(conf.url, &opt, &c, err));
    opt.ttl_ms = INT64_MAX;
    EXPECT(HF_EINVAL, hf_open(conf.url, &opt, &c, E));
    opt.ttl_ms = HF_LEASE_MIN_MS - 1;
    EXPECT_TEXT(HF_EINVAL, "ttl_ms is 9; it must be 10 to",
                hf_open(conf.url, &opt, &c, err));
    opt.ttl_ms = 0;
    opt.op_timeout_ms = -7;
    EXPECT_TEXT(HF_EINVAL, "op_timeout", hf_open(conf.url, &opt, &c, err));
    opt.op_timeout_ms = 0;
    opt.connect_timeout_ms = INT64_MIN;
    EXPECT(HF_EINVAL, hf_open(conf.url, &opt, &c, E));
    assert_null(c);
}

/* Opening fails at once with HF_EAUTH, and the message does not contain the
 * password. */
CONF_CASE(test_bad_password, CONF_SECRET)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *c = (hf_client *)&c;
    char wrong[64];
    int rc;

    snprintf(wrong, sizeof(wrong), "%s-wrong", conf.secret);
    opt.password = wrong;
    EXPECT(HF_EAUTH, hf_open(conf.url, &opt, &c, E));
    assert_null(c);
    opt.password = "";
    rc = hf_open(conf.url, &opt, &c, &err);
    /* An etcd user must have a password, so the client refuses an empty one
     * without a request. */
    EXPECT(strncmp(conf.url, "etcd", 4) ? HF_EAUTH : HF_EINVAL, rc);
    assert_null(strstr(err.text, conf.secret));
    opt.password = conf.secret;
    OK(hf_open(conf.url, &opt, &c, E));
    OK(hf_close(c));
}

CONF_CASE(test_bad_names, 0)
{
    hf_client *c = conf_open();
    static char name[HF_NAME_MAX + 1];
    hf_lock *lock = (hf_lock *)&lock;
    hf_info *info = NULL;
    hf_latch *latch;

    memset(name, 'n', sizeof(name));
    EXPECT_TEXT(HF_EINVAL, "empty", hf_lock_new(c, "", 0, NULL, &lock, err));
    assert_null(lock);
    EXPECT(HF_EINVAL, hf_lock_new(c, "", HF_CSTRING, NULL, &lock, E));
    EXPECT_TEXT(HF_EINVAL, "NULL", hf_lock_new(c, NULL, 3, NULL, &lock, err));
    EXPECT_TEXT(HF_EINVAL, "513",
                hf_lock_new(c, name, sizeof(name), NULL, &lock, err));
    EXPECT_TEXT(HF_EINVAL, "512",
                hf_lock_new(c, name, sizeof(name), NULL, &lock, err));
    EXPECT_TEXT(HF_EINVAL, "NUL", hf_lock_new(c, "a\0b", 3, NULL, &lock, err));
    EXPECT(HF_EINVAL, hf_lock_new(c, "ab\0", 3, NULL, &lock, E));
    assert_null(lock);
    EXPECT(HF_EINVAL, hf_latch_new(c, "", 0, &latch, E));
    if (conf.caps & HF_CAP_INSPECT) {
        EXPECT(HF_EINVAL, hf_inspect(c, "", 0, &info, E));
        EXPECT(HF_EINVAL, hf_inspect(c, name, sizeof(name), &info, E));
        EXPECT(HF_EINVAL, hf_inspect(c, NULL, 1, &info, E));
        EXPECT(HF_EINVAL, hf_break(c, "a\0b", 3, E));
        EXPECT(HF_EINVAL, hf_break(c, NULL, 1, E));
    }
    OK(hf_lock_new(c, name, HF_NAME_MAX, NULL, &lock, E));
    OK(hf_lock_free(lock));
}

CONF_CASE(test_bad_reserved_names, 0)
{
    hf_client *c = conf_open();
    hf_lock *lock = (hf_lock *)&lock;

    for (const char *const *n = conf.reserved; n && *n; n++) {
        EXPECT(HF_EINVAL, hf_lock_new(c, *n, HF_CSTRING, NULL, &lock, E));
        assert_null(lock);
    }
}

static int new_with(hf_client *c, const hf_lock_options *opt, hf_error *err)
{
    hf_lock *lock = (hf_lock *)&lock;
    int rc = hf_lock_new(c, conf_name(), HF_CSTRING, opt, &lock, err);

    if (rc)
        assert_null(lock);
    else
        OK(hf_lock_free(lock));
    return rc;
}

CONF_CASE(test_bad_lock_options, 0)
{
    hf_client *c = conf_open();
    const hf_lock_options good = HF_LOCK_OPTIONS_INIT;
    hf_lock_options opt = good;

    OK(new_with(c, &opt, E));
    opt.size = 4;
    EXPECT_TEXT(HF_EINVAL, "HF_LOCK_OPTIONS_INIT", new_with(c, &opt, err));
    opt = good;
    opt.kind = (enum hf_kind)17;
    EXPECT_TEXT(HF_EINVAL, "17", new_with(c, &opt, err));
    opt.kind = (enum hf_kind)0;
    EXPECT(HF_EINVAL, new_with(c, &opt, E));
    opt.kind = HF_LATCH;
    EXPECT(HF_EINVAL, new_with(c, &opt, E));
    opt = good;
    opt.fairness = (enum hf_fairness)3;
    EXPECT_TEXT(HF_EINVAL, "fairness is 3", new_with(c, &opt, err));
    opt = good;
    opt.flags = 1u << 31;
    EXPECT_TEXT(HF_EINVAL, "flags", new_with(c, &opt, err));
    opt = good;
    opt.permits = 2;
    EXPECT_TEXT(HF_EINVAL, "permits", new_with(c, &opt, err));
    opt = good;
    opt.kind = HF_SEMAPHORE; /* without semaphores, ENOTSUP comes first */
    EXPECT(hf_client_caps(c, HF_SEMAPHORE) ? HF_EINVAL : HF_ENOTSUP,
           new_with(c, &opt, E));
    opt = good;
    opt.ttl_ms = HF_LEASE_MIN_MS;
    OK(new_with(c, &opt, E));
    opt.ttl_ms = HF_LEASE_MIN_MS - 1;
    EXPECT_TEXT(HF_EINVAL, "ttl_ms is 9", new_with(c, &opt, err));
    opt.ttl_ms = -1;
    EXPECT_TEXT(HF_EINVAL, "ttl_ms", new_with(c, &opt, err));
    opt.ttl_ms = (int64_t)HF_LEASE_MAX_MS + 1;
    EXPECT(HF_EINVAL, new_with(c, &opt, E));
    opt.ttl_ms = HF_LEASE_MAX_MS;
    OK(new_with(c, &opt, E));
    opt = good;
    opt.max_hold_ms = -1;
    EXPECT_TEXT(HF_EINVAL, "max_hold_ms", new_with(c, &opt, err));
    opt.max_hold_ms = HF_TIME_MAX_MS + 1;
    EXPECT(HF_EINVAL, new_with(c, &opt, E));
}

CONF_CASE(test_bad_acquire_options, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    const hf_acquire_options good = HF_ACQUIRE_OPTIONS_INIT;
    hf_acquire_options opt = good;

    opt.size = 1;
    EXPECT_TEXT(HF_EINVAL, "HF_ACQUIRE_OPTIONS_INIT",
                hf_lock_acquire(lock, &opt, err));
    opt = good;
    opt.wait_ms = -2;
    EXPECT_TEXT(HF_EINVAL, "-2", hf_lock_acquire(lock, &opt, err));
    opt.wait_ms = INT64_MIN;
    EXPECT(HF_EINVAL, hf_lock_acquire(lock, &opt, E));
    opt.wait_ms = HF_TIME_MAX_MS + 1;
    EXPECT_TEXT(HF_EINVAL, "wait_ms", hf_lock_acquire(lock, &opt, err));
    EXPECT(HF_EINVAL, hf_lock_timed(lock, INT64_MAX, E));
    EXPECT(HF_EINVAL, hf_lock_timed(lock, -5, E));
    opt = good;
    opt.lease_ms = -1;
    EXPECT_TEXT(HF_EINVAL, "lease_ms", hf_lock_acquire(lock, &opt, err));
    opt.lease_ms = HF_LEASE_MIN_MS - 1;
    EXPECT_TEXT(HF_EINVAL, "10 to", hf_lock_acquire(lock, &opt, err));
    opt.lease_ms = (int64_t)HF_LEASE_MAX_MS + 1;
    EXPECT_TEXT(HF_EINVAL, "to 2147483647", hf_lock_acquire(lock, &opt, err));
    opt.lease_ms = INT64_MAX;
    EXPECT(HF_EINVAL, hf_lock_acquire(lock, &opt, E));
    opt = good;
    opt.mode = HF_READ;
    EXPECT_TEXT(HF_EINVAL, "mode", hf_lock_acquire(lock, &opt, err));
    opt.mode = (enum hf_mode)9;
    EXPECT(HF_EINVAL, hf_lock_acquire(lock, &opt, E));
    opt = good;
    opt.permits = 2;
    EXPECT_TEXT(HF_EINVAL, "permits", hf_lock_acquire(lock, &opt, err));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    opt.permits = 1;
    opt.wait_ms = HF_TIME_MAX_MS; /* a hundred years are allowed */
    OK(hf_lock_acquire(lock, &opt, E));
    EXPECT_TEXT(HF_EINVAL, "lease_ms", hf_lock_renew(lock, -1, err));
    EXPECT_TEXT(HF_EINVAL, "10 to", hf_lock_renew(lock, 1, err));
    EXPECT(HF_EINVAL, hf_lock_renew(lock, INT64_MAX, E));
    OK(hf_lock_release(lock, E));
}

static void done(void *arg, hf_lock *lock, int result)
{
}

CONF_CASE(test_bad_null_handles, 0)
{
    hf_client *c = conf_open();
    hf_lock *lock = NULL, *good = conf_lock(c, conf_name());
    hf_info *info;
    hf_names *names;

    OK(hf_close(NULL));
    OK(hf_lock_free(NULL));
    OK(hf_latch_free(NULL));
    hf_info_free(NULL);
    hf_names_free(NULL);
    EXPECT(HF_EINVAL, hf_client_caps(NULL, HF_MUTEX));
    EXPECT(HF_EINVAL, hf_client_caps(c, (enum hf_kind)0));
    EXPECT(HF_EINVAL, hf_client_caps(c, (enum hf_kind)5));
    EXPECT(HF_EINVAL, hf_client_fd(NULL));
    EXPECT(HF_EINVAL, hf_client_dispatch(NULL));
    EXPECT(HF_EINVAL, hf_lock_new(NULL, "a", 1, NULL, &lock, E));
    EXPECT(HF_EINVAL, hf_lock_new(c, "a", 1, NULL, NULL, E));
    EXPECT_TEXT(HF_EINVAL, "NULL", hf_lock_acquire(lock, NULL, err));
    EXPECT(HF_EINVAL, hf_lock_try(lock, E));
    EXPECT(HF_EINVAL, hf_lock_timed(lock, 1, E));
    EXPECT(HF_EINVAL, hf_lock_release(lock, E));
    EXPECT(HF_EINVAL, hf_lock_release_nowait(lock, E));
    EXPECT(HF_EINVAL, hf_lock_renew(lock, 0, E));
    EXPECT(HF_EINVAL, hf_lock_downgrade(lock, E));
    EXPECT(HF_EINVAL, hf_lock_upgrade(lock, E));
    EXPECT(HF_EINVAL, hf_lock_check(lock));
    EXPECT(HF_EINVAL, hf_lock_token(good, NULL));
    EXPECT(HF_EINVAL, hf_lock_deadline(good, NULL));
    EXPECT(HF_EINVAL, hf_lock_count(good, NULL));
    EXPECT(HF_EINVAL, hf_lock_token(lock, &(uint64_t){0}));
    EXPECT(HF_EINVAL, hf_lock_deadline(lock, &(int64_t){0}));
    EXPECT(HF_EINVAL, hf_lock_count(lock, &(unsigned){0}));
    EXPECT(HF_EINVAL, hf_lock_fd(lock));
    EXPECT(HF_EINVAL, hf_lock_cancel(lock));
    EXPECT(HF_EINVAL, hf_lock_acquire_async(lock, NULL, done, NULL, E));
    EXPECT(HF_EINVAL, hf_lock_release_async(lock, done, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_new(NULL, "a", 1, &(hf_latch *){0}, E));
    EXPECT(HF_EINVAL, hf_latch_set(NULL, 1, E));
    EXPECT(HF_EINVAL, hf_latch_down(NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_get(NULL, &(uint64_t){0}, E));
    EXPECT(HF_EINVAL, hf_latch_wait(NULL, 1, NULL, E));
    EXPECT(HF_EINVAL, hf_inspect(NULL, "a", 1, &info, E));
    EXPECT(HF_EINVAL, hf_inspect(c, "a", 1, NULL, E));
    EXPECT(HF_EINVAL, hf_list(NULL, NULL, &names, E));
    EXPECT(HF_EINVAL, hf_list(c, NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_break(NULL, "a", 1, E));
    EXPECT(HF_EINVAL, hf_ask(NULL, "a", 1, E));
    EXPECT(HF_EINVAL, hf_lock_put(NULL, "a", 1, "b", 1, E));
}

CONF_CASE(test_bad_free_while_held_or_waited_for, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);
    hf_lock *handle = conf_lock_flags(a, conf_name(), HF_OWNER_HANDLE);
    struct conf_taker t;

    OK(hf_lock_acquire(lock, NULL, E));
    EXPECT(HF_EBUSY, hf_lock_free(lock));
    OK(hf_lock_check(lock));
    OK(hf_lock_acquire(handle, NULL, E));
    EXPECT(HF_EBUSY, hf_lock_free(handle));
    OK(hf_lock_release(handle, E));
    conf_taker_wait(&t, other, HF_WRITE, 0);
    EXPECT(HF_EBUSY, hf_lock_free(other));
    OK(hf_lock_release(lock, E));
    COMES(conf_taker_has(&t));
    EXPECT(HF_EBUSY, hf_lock_free(other));
    conf_taker_end(&t);
}

/* Another thread may free the handle as soon as the lock is released, even
 * before the releasing call has returned. */
struct releaser {
    struct conf_thread t;
    hf_lock *lock;
    uint32_t has_it; /* atomic */
    int how, rc;
};

static void take_and_release(void *arg)
{
    struct releaser *r = arg;

    r->rc = hf_lock_acquire(r->lock, NULL, NULL);
    __atomic_store_n(&r->has_it, 1, __ATOMIC_RELEASE);
    if (!r->rc)
        r->rc = r->how ? hf_lock_release(r->lock, NULL)
                       : hf_lock_release_nowait(r->lock, NULL);
}

CONF_CASE(test_bad_free_as_it_is_released, 0)
{
    hf_client *c = conf_open();
    const char *name = conf_name();

    for (int i = 0; i < 200; i++) {
        struct releaser r = {.lock = conf_lock(c, name), .how = i % 2};
        int rc;

        conf_thread_start(&r.t, take_and_release, &r);
        COMES(__atomic_load_n(&r.has_it, __ATOMIC_ACQUIRE));
        conf_forget(r.lock);
        do
            rc = hf_lock_free(r.lock);
        while (rc == HF_EBUSY);
        OK(rc);
        conf_thread_join(&r.t);
        OK(r.rc);
    }
}

/* A handle can be freed although its hold was lost and not released. */
CONF_CASE(test_bad_free_after_loss, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());

    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    EXPECT(HF_EBUSY, hf_lock_free(lock));
    conf_shorten(lock, 200);
    COMES(hf_lock_check(lock) == HF_ELOST);
}

CONF_CASE(test_bad_texts_of_codes, 0)
{
    for (int code = 0; code >= -16; code--) {
        assert_true(hf_error_text(code)[0] != '\0');
        assert_int_equal(strncmp(hf_error_name(code), "HF_", 3), 0);
        assert_string_not_equal(hf_error_name(code), "HF_E?");
    }
    assert_string_equal(hf_error_name(-17), "HF_E?");
    assert_string_equal(hf_error_name(1), "HF_E?");
    assert_true(hf_error_text(-17)[0] != '\0');
}
