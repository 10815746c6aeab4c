/* How a program learns that its hold has ended without a release. */
#include "conf.h"

#include <poll.h>
#include <sys/timerfd.h>

static bool readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

/* Returns whether fd is not readable, or the lease of `ms` requested at `since`
 * may have ended. */
static bool quiet_until(int fd, int64_t since, int64_t ms)
{
    return !readable(fd) || conf_may_be_over(since, ms);
}

CONF_CASE(test_loss_every_call_says_so, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    uint64_t token;
    int64_t deadline;
    unsigned count;

    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    OK(hf_lock_acquire(lock, NULL, E)); /* held twice, must be released twice */
    conf_shorten(lock, 200);
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
    conf_comes_free(lock);
}

CONF_CASE(test_loss_of_a_handle_is_its_own, CONF_EACH | CONF_LEASE)
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
}

/* The program may free the handle before the library has noticed the end of the
 * lease. */
CONF_CASE(test_loss_keeps_no_handle, CONF_EACH | CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();

    for (int i = 0; i < 5; i++) {
        hf_lock *lock = conf_lock_flags(c, name, i & 1 ? HF_OWNER_HANDLE : 0);
        int64_t taken = wait_now(), deadline = 0;

        OK(conf_take_lease(lock, WAIT_LONG_MS, 100));
        HELD(taken, 100, hf_lock_deadline(lock, &deadline));
        while (wait_now() < deadline)
            ;
        conf_free(lock);
    }
}

/* A late release of a lost hold must not release the next owner's hold. */
CONF_CASE(test_loss_late_release_frees_nobody_else, CONF_EACH | CONF_LEASE)
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
}

CONF_CASE(test_loss_makes_the_descriptor_readable, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    int fd = hf_lock_fd(lock);
    int64_t taken;

    assert_true(fd >= 0);
    assert_int_equal(hf_lock_fd(lock), fd);
    assert_false(readable(fd));
    taken = wait_now();
    OK(conf_take_lease(lock, HF_FOREVER, 500));
    assert_true(quiet_until(fd, taken, 500));
    COMES(readable(fd));
    EXPECT(HF_ELOST, hf_lock_check(lock));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    /* After a new acquire the old loss is no longer reported. */
    OK(conf_take_lease(lock, WAIT_LONG_MS, 60000));
    assert_false(readable(fd));
    OK(hf_lock_release(lock, E));
    assert_false(readable(fd));
    OK(hf_lock_acquire(lock, NULL, E));
    assert_false(readable(fd));
    OK(hf_lock_release(lock, E));
}

/* Each of the thread's handles has a descriptor that becomes readable when the
 * hold is lost, even if the program calls hf_lock_fd() only after the
 * acquire. */
CONF_CASE(test_loss_descriptor_is_made_late, CONF_EACH | CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock(c, name), *two = conf_lock(c, name);
    int64_t taken = wait_now();
    int fd1, fd2;

    OK(conf_take_lease(one, HF_FOREVER, 500));
    fd1 = hf_lock_fd(one);
    fd2 = hf_lock_fd(two);
    assert_true(fd1 >= 0 && fd2 >= 0 && fd1 != fd2);
    assert_true(quiet_until(fd1, taken, 500));
    assert_true(quiet_until(fd2, taken, 500));
    COMES(readable(fd1) && readable(fd2));
    EXPECT(HF_ELOST, hf_lock_release(one, E));
}

/* Two handles of a client acquire in turn; each descriptor reports only the
 * loss of its own handle's hold. */
CONF_CASE(test_loss_descriptor_is_about_the_handles_own_hold,
          CONF_EACH | CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *two = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    int fd1 = hf_lock_fd(one), fd2 = hf_lock_fd(two);
    int64_t taken;

    assert_true(fd1 >= 0 && fd2 >= 0);
    OK(conf_take_lease(one, HF_FOREVER, 300));
    COMES(readable(fd1));
    assert_false(readable(fd2)); /* handle two had no hold */
    taken = wait_now();
    OK(conf_take_lease(two, WAIT_LONG_MS, 300));
    assert_true(readable(fd1)); /* `one` has not released its lost hold yet */
    assert_true(quiet_until(fd2, taken, 300));
    EXPECT(HF_ELOST, hf_lock_release(one, E));
    COMES(readable(fd2));
    EXPECT(HF_ELOST, hf_lock_release(two, E));
    OK(conf_take_lease(one, WAIT_LONG_MS, 60000));
    assert_false(readable(fd1)); /* the new hold is not lost */
    OK(hf_lock_release(one, E));
    OK(conf_take_lease(two, WAIT_LONG_MS, 60000));
    assert_false(readable(fd1) || readable(fd2));
    OK(hf_lock_release(two, E));
    assert_false(readable(fd1) || readable(fd2));
}

/* A loss must not be reported to the handle that acquires the lock next. */
CONF_CASE(test_loss_descriptor_is_quiet_about_the_next_hold,
          CONF_EACH | CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lost = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *next = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    int fd;

    OK(conf_take_lease(lost, HF_FOREVER, 200));
    COMES(hf_lock_check(lost) == HF_ELOST);
    fd = hf_lock_fd(lost); /* obtained after the loss */
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
}

/* Two threads use one handle, and one of them has lost its hold. Until that
 * thread releases, the descriptor stays readable, whatever the other thread
 * does. */
struct loser {
    struct conf_thread t;
    hf_lock *lock;
    uint32_t go; /* atomic */
    int rc, release_rc;
};

static void lose(void *arg)
{
    struct loser *l = arg;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.lease_ms = 200);

    l->rc = hf_lock_acquire(l->lock, &opt, NULL);
    WAIT_FOR(__atomic_load_n(&l->go, __ATOMIC_ACQUIRE));
    l->release_rc = hf_lock_release(l->lock, NULL);
}

CONF_CASE(test_loss_descriptor_waits_for_the_thread_that_lost,
          CONF_EACH | CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    struct loser l = {.lock = conf_lock(c, name)};
    int fd = hf_lock_fd(l.lock);
    hf_lock *late;

    assert_true(fd >= 0);
    conf_thread_start(&l.t, lose, &l);
    COMES(readable(fd));
    for (int i = 0; i < 2; i++) {
        OK(hf_lock_timed(l.lock, WAIT_LONG_MS, E));
        assert_true(readable(fd)); /* the other thread has not released yet */
        OK(hf_lock_renew(l.lock, 0, E));
        assert_true(readable(fd));
        OK(i ? hf_lock_release(l.lock, E) : hf_lock_release_nowait(l.lock, E));
        assert_true(readable(fd));
    }
    late = conf_lock(c, name);
    assert_true(readable(hf_lock_fd(late))); /* obtained after the loss */
    conf_free(late);
    __atomic_store_n(&l.go, 1, __ATOMIC_RELEASE);
    conf_thread_join(&l.t);
    assert_int_equal(l.rc, 0);
    assert_int_equal(l.release_rc, HF_ELOST);
    assert_false(readable(fd));
    OK(hf_lock_timed(l.lock, WAIT_LONG_MS, E));
    assert_false(readable(fd));
    OK(hf_lock_release(l.lock, E));
    conf_free(l.lock);
}

static void take_and_exit(void *lock)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.lease_ms = 200);

    (void)hf_lock_acquire(lock, &opt, NULL);
}

/* A thread loses its hold and exits, so it will never release. Its loss is
 * reported once, and not to the next owner. */
CONF_CASE(test_loss_of_a_thread_that_is_gone_is_told_once,
          CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    int fd = hf_lock_fd(lock);
    struct conf_thread t;

    conf_thread_start(&t, take_and_exit, lock);
    conf_thread_join(&t);
    COMES(readable(fd));
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    assert_false(readable(fd));
    OK(hf_lock_release(lock, E));
}

static void take_lose_and_exit(void *arg)
{
    struct loser *l = arg;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.lease_ms = 200);

    l->rc = hf_lock_acquire(l->lock, &opt, NULL);
    WAIT_FOR(hf_lock_check(l->lock) == HF_ELOST);
}

/* A thread notices its loss and exits without a release, so no call of that
 * thread clears the report. */
static void lose_and_exit(enum hf_kind kind)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    struct loser l = {.lock = conf_lock_of(c, name, kind, 0, 0)};
    hf_lock *next = conf_lock_of(c, name, kind, 0, 0);
    int fd = hf_lock_fd(l.lock), fd_next = hf_lock_fd(next);
    int64_t taken;

    assert_true(fd >= 0 && fd_next >= 0);
    conf_thread_start(&l.t, take_lose_and_exit, &l);
    conf_thread_join(&l.t);
    assert_int_equal(l.rc, 0);
    COMES(readable(fd) && readable(fd_next));
    OK(hf_lock_timed(next, WAIT_LONG_MS, E));
    assert_false(readable(fd_next));
    OK(hf_lock_release(next, E));
    /* The descriptor can still report the next loss. */
    taken = wait_now();
    OK(conf_take_lease(next, WAIT_LONG_MS, 200));
    assert_true(quiet_until(fd_next, taken, 200));
    COMES(readable(fd_next));
    EXPECT(HF_ELOST, hf_lock_release(next, E));
    assert_false(readable(fd_next));
    conf_free(l.lock);
}

CONF_ROW(test_loss_of_a_thread_that_exits_later_is_forgotten,
         CONF_EACH | CONF_LEASE, lose_and_exit(HF_MUTEX));
CONF_ROW(test_loss_of_a_writer_that_exits_later_is_forgotten,
         CONF_EACH | CONF_RWLOCK | CONF_LEASE, lose_and_exit(HF_RWLOCK));

/* A handle with HF_OWNER_HANDLE is used alongside threads. It loses its hold
 * and does not release it. The descriptors of the threads must not become
 * readable, because they report only the threads' own losses. */
static void lose_beside_threads(enum hf_kind kind, enum hf_mode mode)
{
    hf_acquire_options opt =
        ACQUIRE_OPTIONS(.mode = mode, .lease_ms = 200, .wait_ms = WAIT_LONG_MS);
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *handle = conf_lock_of(c, name, kind, 0, HF_OWNER_HANDLE);
    hf_lock *thread = conf_lock_of(c, name, kind, 0, 0);
    int fd = hf_lock_fd(thread), fd_handle = hf_lock_fd(handle);

    OK(hf_lock_acquire(handle, &opt, E));
    COMES(hf_lock_check(handle) == HF_ELOST && readable(fd_handle));
    assert_false(readable(fd));
    for (int i = 0; i < 2; i++) {
        int64_t taken = wait_now();

        OK(hf_lock_acquire(thread, &opt, E));
        assert_true(quiet_until(fd, taken, opt.lease_ms));
        COMES(readable(fd));
        EXPECT(HF_ELOST, hf_lock_release(thread, E));
        assert_false(readable(fd));
    }
    assert_true(readable(fd_handle));
    EXPECT(HF_ELOST, hf_lock_release(handle, E));
    assert_false(readable(fd_handle));
}

CONF_ROW(test_loss_of_a_handle_is_nothing_to_threads, CONF_EACH | CONF_LEASE,
         lose_beside_threads(HF_MUTEX, HF_WRITE));

CONF_CASE(test_loss_of_a_handle_is_nothing_to_readers,
          CONF_EACH | CONF_RWLOCK | CONF_LEASE)
{
    lose_beside_threads(HF_RWLOCK, HF_WRITE);
    lose_beside_threads(HF_RWLOCK, HF_READ);
}

/* The program may release as soon as the descriptor is readable, even if this
 * release is the first call to notice the loss. */
CONF_CASE(test_loss_is_over_with_the_release_that_finds_it, CONF_LEASE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();

    for (int i = 0; i < 8; i++) {
        hf_lock *lock = conf_lock_flags(c, name, i % 2 ? HF_OWNER_HANDLE : 0);
        int fd = hf_lock_fd(lock);
        int64_t end;

        OK(conf_take_lease(lock, WAIT_LONG_MS, 150));
        end = wait_now() + 150 * 1000000LL; /* by then the lease has ended */
        while (!readable(fd) && wait_now() < end + 1000000000LL)
            ;
        EXPECT(HF_ELOST, hf_lock_release(lock, E));
        assert_false(readable(fd));
        conf_free(lock);
    }
}

/* Readers of one client share a hold. One of them releases it before the hold
 * is lost; the loss is not reported to that reader. */
CONF_CASE(test_loss_is_nothing_to_a_reader_that_left,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    hf_client *c = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock[3];
    struct itimerspec left;
    int fd[3];

    for (int i = 0; i < 3; i++) {
        lock[i] = conf_lock_of(c, name, HF_RWLOCK, 0, HF_OWNER_HANDLE);
        fd[i] = hf_lock_fd(lock[i]);
        assert_true(fd[i] >= 0);
        OK(conf_take(lock[i], HF_READ, 0, WAIT_LONG_MS));
    }
    OK(hf_lock_release(lock[1], E));
    assert_int_equal(timerfd_gettime(fd[1], &left), 0);
    assert_int_equal(left.it_value.tv_sec, 0); /* the timer is off */
    assert_int_equal(left.it_value.tv_nsec, 0);
    OK(hf_break(b, name, HF_CSTRING, E));
    EXPECT(HF_ELOST, hf_lock_renew(lock[0], 0, E));
    /* The third reader may have its own hold at the server. In that case only
     * its own renewal discovers the loss. */
    if (hf_lock_check(lock[2]) == 0)
        EXPECT(HF_ELOST, hf_lock_renew(lock[2], 0, E));
    assert_true(readable(fd[0]) && readable(fd[2]));
    assert_false(readable(fd[1]));
    EXPECT(HF_ELOST, hf_lock_release(lock[0], E));
    assert_false(readable(fd[0])); /* each reader clears only its own report */
    assert_true(readable(fd[2]));
    EXPECT(HF_ELOST, hf_lock_release(lock[2], E));
    assert_false(readable(fd[2]));
}

/* The descriptor's timer follows the deadline of each renewal. */
CONF_CASE(test_loss_descriptor_follows_renewal, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    int fd = hf_lock_fd(lock);
    int64_t first;

    first = conf_take_and_extend(lock, 1000);
    COMES(wait_now() > first + 100 * (int64_t)1000000);
    assert_false(readable(fd));
    conf_shorten(lock, 200);
    COMES(readable(fd));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
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

CONF_CASE(test_loss_is_an_event, CONF_EACH | CONF_LEASE)
{
    struct heard h = {0};
    hf_client *c;
    const char *name = conf_name();
    hf_lock *lock;
    uint64_t token;
    int fd;
    hf_client_options opt = CLIENT_OPTIONS(.on_event = hear, .event_arg = &h);

    c = conf_open_with(&opt);
    lock = conf_lock(c, name);
    fd = hf_client_fd(c);
    assert_true(fd >= 0);
    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    token = conf_token(lock);
    conf_shorten(lock, 300);
    COMES(readable(fd) && (hf_client_dispatch(c), h.lost));
    assert_true(h.token == token);
    assert_int_equal(h.name_len, strlen(name));
    assert_string_equal(h.name, name);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    while (hf_client_dispatch(c) > 0)
        ;
    assert_int_equal(h.lost, 1); /* exactly once */
    /* A released hold is not reported as lost. */
    OK(conf_take_lease(lock, WAIT_LONG_MS, 60000));
    OK(hf_lock_release(lock, E));
    hf_client_dispatch(c);
    assert_int_equal(h.lost, 1);
}

/* A program without an event loop learns of the loss when it next
 * dispatches. */
CONF_CASE(test_loss_is_an_event_without_the_descriptor, CONF_EACH | CONF_LEASE)
{
    struct heard h = {0};
    hf_client *c;
    hf_lock *lock;
    hf_client_options opt = CLIENT_OPTIONS(.on_event = hear, .event_arg = &h);

    c = conf_open_with(&opt);
    lock = conf_lock(c, conf_name());
    OK(conf_take_lease(lock, HF_FOREVER, 200));
    COMES((hf_client_dispatch(c), h.lost == 1));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
}

#define MANY 2000

struct crowd {
    hf_lock *lock[MANY];
    unsigned told[MANY]; /* number of reports of each loss */
    unsigned strange;
};

static void hear_of_crowd(void *arg, const hf_event *e)
{
    struct crowd *crowd = arg;
    const char *number = strrchr(e->name, '#');
    unsigned long i = number ? strtoul(number + 1, NULL, 10) : MANY;

    if (e->type == HF_EVENT_LOST && i < MANY && e->token && *e->reason)
        crowd->told[i]++;
    else
        crowd->strange +=
            e->type == HF_EVENT_LOST || e->type == HF_EVENT_OVERFLOW;
}

static uint64_t lost_so_far(hf_client *c)
{
    hf_metrics m = HF_METRICS_INIT;

    OK(hf_client_metrics(c, &m, E));
    return m.lost;
}

/* Very many holds are lost before the program dispatches; each loss must be
 * reported. */
CONF_CASE(test_loss_of_two_thousand_holds_is_told, 0)
{
    static struct crowd crowd;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_lock_options one = HF_LOCK_OPTIONS_INIT;
    char name[128];
    const char *all = conf_name();
    hf_client *c;

    crowd = (struct crowd){0};
    opt.on_event = hear_of_crowd;
    opt.event_arg = &crowd;
    c = conf_open_with(&opt);
    one.max_hold_ms = 100;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%s#%d", all, i);
        crowd.lock[i] = conf_lock_with(c, name, &one);
        OK(hf_lock_try(crowd.lock[i], E));
    }
    COMES(lost_so_far(c) == MANY);
    while (hf_client_dispatch(c) > 0)
        ;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(crowd.told[i], 1);
        EXPECT(HF_ELOST, hf_lock_release(crowd.lock[i], E));
        conf_free(crowd.lock[i]);
    }
    assert_int_equal(crowd.strange, 0);
}

static void *alloc_or_not(void *ctx, size_t size)
{
    return __atomic_load_n((bool *)ctx, __ATOMIC_ACQUIRE) ? NULL : malloc(size);
}

static void free_any(void *ctx, void *p)
{
    free(p);
}

CONF_CASE(test_loss_is_told_without_memory, CONF_EACH | CONF_LEASE)
{
    static bool none_left; /* static: the client outlives the case function */
    hf_hooks hooks = {
        .ctx = &none_left, .alloc = alloc_or_not, .free = free_any};
    struct heard h = {0};
    hf_client *c;
    hf_lock *lock;
    hf_client_options opt =
        CLIENT_OPTIONS(.on_event = hear, .event_arg = &h, .hooks = &hooks);

    c = conf_open_with(&opt);
    lock = conf_lock(c, conf_name());
    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    conf_shorten(lock, 300);
    __atomic_store_n(&none_left, true, __ATOMIC_RELEASE);
    COMES((hf_client_dispatch(c), h.lost == 1));
    __atomic_store_n(&none_left, false, __ATOMIC_RELEASE);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    hf_client_dispatch(c);
    assert_int_equal(h.lost, 1);
}

CONF_CASE(test_loss_in_a_synchronized_block_is_its_result, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock_options opt = LOCK_OPTIONS(.max_hold_ms = 200);
    hf_lock *lock;

    lock = conf_lock_with(c, conf_name(), &opt);
    HF_SYNCHRONIZED(lock)
    {
        COMES(hf_lock_check(lock) == HF_ELOST);
    }
    EXPECT(HF_ELOST, hf_synchronized_result());
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
}
