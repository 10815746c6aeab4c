/* A hold that ended without a release: how the program hears of it. */
#include "conf.h"

#include <poll.h>

static bool readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static void test_loss_every_call_says_so(void)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    uint64_t token;
    int64_t deadline;
    unsigned count;

    OK(conf_take_lease(lock, HF_FOREVER, 200));
    OK(hf_lock_acquire(lock, NULL, E)); /* twice: to be released twice */
    COMES(hf_lock_check(lock) == HF_ELOST);
    for (int i = 0; i < 2; i++) {
        EXPECT(HF_ELOST, hf_lock_check(lock));
        EXPECT(HF_ELOST, hf_lock_token(lock, &token));
        EXPECT(HF_ELOST, hf_lock_deadline(lock, &deadline));
        EXPECT(HF_ELOST, hf_lock_count(lock, &count));
        EXPECT(HF_ELOST, hf_lock_renew(lock, 0, E));
        EXPECT(HF_ELOST, hf_lock_acquire(lock, NULL, E));
        EXPECT(HF_ELOST, hf_lock_try(lock, E));
        EXPECT(HF_ELOST,
               i ? hf_lock_release(lock, E) : hf_lock_release_nowait(lock, E));
    }
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    EXPECT(HF_ENOTOWNER, hf_lock_release(lock, E));
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    OK(hf_lock_release(lock, E));
    conf_free(lock);
    OK(hf_close(c));
}

static void test_loss_of_a_handle_is_its_own(void)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *two = conf_lock_flags(c, name, HF_OWNER_HANDLE);

    OK(conf_take_lease(one, HF_FOREVER, 200));
    OK(hf_lock_timed(two, WAIT_LONG_MS, E));
    EXPECT(HF_ELOST, hf_lock_check(one));
    EXPECT(HF_ELOST, hf_lock_release(one, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(one, E));
    OK(hf_lock_check(two));
    OK(hf_lock_release(two, E));
    conf_free(one);
    conf_free(two);
    OK(hf_close(c));
}

/* The late release of what was lost frees nobody else. */
static void test_loss_late_release_frees_nobody_else(void)
{
    hf_client *a = conf_open(), *b = conf_open(), *d = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);
    hf_lock *third = conf_lock(d, name);

    OK(conf_take_lease(lock, HF_FOREVER, 200));
    OK(hf_lock_timed(other, WAIT_LONG_MS, E));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    EXPECT(HF_EBUSY, hf_lock_try(lock, E));
    EXPECT(HF_EBUSY, hf_lock_try(third, E));
    OK(hf_lock_check(other));
    OK(hf_lock_release(other, E));
    conf_free(lock);
    conf_free(other);
    conf_free(third);
    OK(hf_close(a));
    OK(hf_close(b));
    OK(hf_close(d));
}

static void test_loss_makes_the_descriptor_readable(void)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    int fd = hf_lock_fd(lock);

    assert_true(fd >= 0);
    assert_int_equal(hf_lock_fd(lock), fd);
    assert_false(readable(fd));
    OK(conf_take_lease(lock, HF_FOREVER, 500));
    assert_false(readable(fd));
    COMES(readable(fd));
    EXPECT(HF_ELOST, hf_lock_check(lock));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    /* A new hold, and the old loss does not show any more. */
    OK(conf_take_lease(lock, WAIT_LONG_MS, 60000));
    assert_false(readable(fd));
    OK(hf_lock_release(lock, E));
    assert_false(readable(fd));
    OK(hf_lock_acquire(lock, NULL, E));
    assert_false(readable(fd));
    OK(hf_lock_release(lock, E));
    conf_free(lock);
    OK(hf_close(c));
}

/* Made while the lock is held; of two handles both tell. */
static void test_loss_descriptor_is_made_late(void)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock(c, name), *two = conf_lock(c, name);
    int fd1, fd2;

    OK(conf_take_lease(one, HF_FOREVER, 500));
    fd1 = hf_lock_fd(one);
    fd2 = hf_lock_fd(two);
    assert_true(fd1 >= 0 && fd2 >= 0 && fd1 != fd2);
    assert_false(readable(fd1) || readable(fd2));
    COMES(readable(fd1) && readable(fd2));
    EXPECT(HF_ELOST, hf_lock_release(one, E));
    conf_free(one);
    conf_free(two);
    OK(hf_close(c));
}

/* Two handles take turns; each hears of what it had itself, once. */
static void test_loss_descriptor_is_about_the_handles_own_hold(void)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *two = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    int fd1 = hf_lock_fd(one), fd2 = hf_lock_fd(two);

    assert_true(fd1 >= 0 && fd2 >= 0);
    OK(conf_take_lease(one, HF_FOREVER, 300));
    COMES(readable(fd1));
    assert_false(readable(fd2)); /* it has had nothing */
    OK(conf_take_lease(two, WAIT_LONG_MS, 300));
    assert_true(readable(fd1)); /* nobody has asked one yet */
    assert_false(readable(fd2));
    EXPECT(HF_ELOST, hf_lock_release(one, E));
    COMES(readable(fd2));
    EXPECT(HF_ELOST, hf_lock_release(two, E));
    OK(conf_take_lease(one, WAIT_LONG_MS, 60000));
    assert_false(readable(fd1)); /* the old loss is none of the new hold */
    OK(hf_lock_release(one, E));
    OK(conf_take_lease(two, WAIT_LONG_MS, 60000));
    assert_false(readable(fd1) || readable(fd2));
    OK(hf_lock_release(two, E));
    assert_false(readable(fd1) || readable(fd2));
    conf_free(one);
    conf_free(two);
    OK(hf_close(c));
}

/* The loss is not told again to whoever has the lock next. */
static void test_loss_descriptor_is_quiet_about_the_next_hold(void)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lost = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *next = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    int fd;

    OK(conf_take_lease(lost, HF_FOREVER, 200));
    COMES(hf_lock_check(lost) == HF_ELOST);
    fd = hf_lock_fd(lost); /* made late */
    assert_true(fd >= 0 && readable(fd));
    OK(hf_lock_timed(next, WAIT_LONG_MS, E));
    assert_false(readable(hf_lock_fd(next)));
    EXPECT(HF_ELOST, hf_lock_release(lost, E));
    OK(hf_lock_renew(next, 0, E));
    assert_false(readable(hf_lock_fd(next)));
    OK(hf_lock_release(next, E));
    OK(hf_lock_timed(lost, WAIT_LONG_MS, E));
    assert_false(readable(fd));
    OK(hf_lock_release(lost, E));
    assert_false(readable(fd));
    conf_free(lost);
    conf_free(next);
    OK(hf_close(c));
}

/* The descriptor follows what renewal does to the deadline. */
static void test_loss_descriptor_follows_renewal(void)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    int fd = hf_lock_fd(lock);
    int64_t first;

    OK(conf_take_lease(lock, HF_FOREVER, 1000));
    first = conf_deadline(lock);
    OK(hf_lock_renew(lock, 60000, E));
    COMES(wait_now() > first + 100 * (int64_t)1000000);
    assert_false(readable(fd));
    OK(hf_lock_renew(lock, 200, E));
    COMES(readable(fd));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    conf_free(lock);
    OK(hf_close(c));
}

struct heard {
    int lost, others;
    uint64_t token;
    size_t name_len;
    char name[64];
};

static void hear(void *arg, const hf_event *e)
{
    struct heard *h = arg;

    if (e->type != HF_EVENT_LOST) {
        h->others++;
        return;
    }
    h->lost++;
    h->token = e->token;
    h->name_len = e->name_len;
    if (e->name_len < sizeof(h->name))
        memcpy(h->name, e->name, e->name_len + 1);
}

static void test_loss_is_an_event(void)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    struct heard h = {0};
    hf_client *c;
    const char *name = conf_name();
    hf_lock *lock;
    uint64_t token;
    int fd;

    opt.on_event = hear;
    opt.event_arg = &h;
    c = conf_open_with(&opt);
    lock = conf_lock(c, name);
    fd = hf_client_fd(c);
    assert_true(fd >= 0);
    OK(conf_take_lease(lock, HF_FOREVER, 300));
    token = conf_token(lock);
    COMES(readable(fd) && (hf_client_dispatch(c), h.lost));
    assert_true(h.token == token);
    assert_int_equal(h.name_len, strlen(name));
    assert_string_equal(h.name, name);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    while (hf_client_dispatch(c) > 0)
        ;
    assert_int_equal(h.lost, 1); /* once */
    /* A hold that was released is none that was lost. */
    OK(conf_take_lease(lock, WAIT_LONG_MS, 300));
    OK(hf_lock_release(lock, E));
    hf_client_dispatch(c);
    assert_int_equal(h.lost, 1);
    conf_free(lock);
    OK(hf_close(c));
}

/* A program without a loop of its own hears of it at its next dispatch. */
static void test_loss_is_an_event_without_the_descriptor(void)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    struct heard h = {0};
    hf_client *c;
    hf_lock *lock;

    opt.on_event = hear;
    opt.event_arg = &h;
    c = conf_open_with(&opt);
    lock = conf_lock(c, conf_name());
    OK(conf_take_lease(lock, HF_FOREVER, 200));
    COMES((hf_client_dispatch(c), h.lost == 1));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    conf_free(lock);
    OK(hf_close(c));
}

static void test_loss_in_a_synchronized_block_is_its_result(void)
{
    hf_client *c = conf_open();
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *lock;

    opt.max_hold_ms = 200;
    lock = conf_lock_with(c, conf_name(), &opt);
    HF_SYNCHRONIZED(lock)
    {
        COMES(hf_lock_check(lock) == HF_ELOST);
    }
    EXPECT(HF_ELOST, hf_synchronized_result());
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    conf_free(lock);
    OK(hf_close(c));
}

const struct conf_case conf_loss[] = {
    CONF_CASE(test_loss_every_call_says_so, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_of_a_handle_is_its_own, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_late_release_frees_nobody_else, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_makes_the_descriptor_readable, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_descriptor_is_made_late, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_descriptor_follows_renewal, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_descriptor_is_about_the_handles_own_hold,
              CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_descriptor_is_quiet_about_the_next_hold,
              CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_is_an_event, CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_is_an_event_without_the_descriptor,
              CONF_EACH | CONF_LEASE),
    CONF_CASE(test_loss_in_a_synchronized_block_is_its_result, CONF_EACH),
    {0},
};
