/* Watches: a program is notified of changes of a name. */
#include "conf.h"

#include <poll.h>
#include <sys/wait.h>

struct seen {
    hf_watch *watch;
    unsigned calls;
    char name[128]; /* name in the last call; "" for NULL */
    int freed; /* result of hf_watch_free() in the callback; 1 if not called */
};

static void see(void *arg, hf_watch *watch, const char *name, size_t len)
{
    struct seen *s = arg;

    assert_ptr_equal(watch, s->watch);
    s->calls++;
    snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
    assert_int_equal(strlen(s->name), len);
}

static void free_watch(void *watch)
{
    OK(hf_watch_free(watch));
}

/* Creates a watch, which the frame frees. */
static void watch(hf_client *c, const char *name, unsigned flags,
                  struct seen *s)
{
    *s = (struct seen){0};
    OK(hf_watch_new(c, name, HF_CSTRING, flags, see, s, &s->watch, E));
    conf_defer(free_watch, s->watch);
}

/* Dispatches; returns whether the callback has been called more than `before`
 * times. */
static bool is_seen(hf_client *c, const struct seen *s, unsigned before)
{
    assert_true(hf_client_dispatch(c) >= 0);
    return s->calls > before;
}

static size_t holders(hf_client *c, const char *name)
{
    return conf_inspect(c, name)->holders_len;
}

/* Inspects the name after each call of the callback, as a program would.
 * Returns whether the last inspection showed n holders. A caller repeats
 * shows() until it returns true. */
static bool shows(hf_client *c, struct seen *s, const char *name, size_t n)
{
    static size_t last;

    if (s->calls == 0) { /* the first inspection does not wait for a call */
        s->calls = 1;
        last = holders(c, name);
    }
    if (is_seen(c, s, s->calls))
        last = holders(c, name);
    return last == n;
}

CONF_CASE(test_watch_is_as_declared, CONF_FRESH)
{
    hf_client *c = conf_open();
    struct seen s = {0};

    EXPECT(conf.watches ? 0 : HF_ENOTSUP,
           hf_watch_new(c, conf_name(), HF_CSTRING, 0, see, &s, &s.watch, E));
    assert_int_equal(s.watch != NULL, conf.watches);
    OK(hf_watch_free(s.watch));
    EXPECT(conf.watches_prefixes ? 0 : HF_ENOTSUP,
           hf_watch_new(c, conf_name(), HF_CSTRING, HF_WATCH_PREFIX, see, &s,
                        &s.watch, E));
    assert_int_equal(s.watch != NULL, conf.watches_prefixes);
    OK(hf_watch_free(s.watch));
    OK(hf_watch_free(NULL));
}

CONF_CASE(test_watch_wrong_arguments, 0)
{
    hf_client *c = conf_open();
    struct seen s = {0};
    char name[HF_NAME_MAX + 2] = "";
    hf_watch *w = (hf_watch *)1;

    memset(name, 'n', HF_NAME_MAX + 1);
    EXPECT(HF_EINVAL, hf_watch_new(c, "n", 1, 0, see, &s, NULL, E));
    EXPECT(HF_EINVAL, hf_watch_new(NULL, "n", 1, 0, see, &s, &w, E));
    assert_null(w);
    EXPECT(HF_EINVAL, hf_watch_new(c, "n", 1, 0, NULL, &s, &w, E));
    EXPECT(HF_EINVAL, hf_watch_new(c, "n", 1, 2, see, &s, &w, E));
    EXPECT(HF_EINVAL, hf_watch_new(c, NULL, 0, 0, see, &s, &w, E));
    EXPECT(HF_EINVAL, hf_watch_new(c, "", 0, 0, see, &s, &w, E));
    EXPECT(HF_EINVAL, hf_watch_new(c, name, HF_CSTRING, 0, see, &s, &w, E));
    EXPECT(HF_EINVAL,
           hf_watch_new(c, name, HF_CSTRING, HF_WATCH_PREFIX, see, &s, &w, E));
}

/* Each change by another client causes a call, and an inspection after the call
 * shows the change. */
CONF_CASE(test_watch_hears_holders, CONF_EACH | CONF_WATCH)
{
    struct seen s;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    watch(g.c[0], g.name, 0, &s);
    for (int i = 0; i < 3; i++) {
        OK(hf_lock_acquire(g.l[1], NULL, E));
        COMES(shows(g.c[0], &s, g.name, 1));
        assert_true(i == 0 || strcmp(s.name, g.name) == 0);
        OK(hf_lock_release(g.l[1], E));
        COMES(shows(g.c[0], &s, g.name, 0));
        assert_string_equal(s.name, g.name);
    }
}

/* A client is notified of changes of its own locks, by each of two watches on
 * one name. */
CONF_CASE(test_watch_hears_its_own, CONF_EACH | CONF_WATCH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(c, name);
    struct seen s, other;

    watch(c, name, 0, &s);
    watch(c, name, 0, &other);
    OK(hf_lock_acquire(lock, NULL, E));
    COMES(is_seen(c, &s, 0) && is_seen(c, &other, 0));
    conf_forget(other.watch);
    OK(hf_watch_free(other.watch));
    for (unsigned calls = s.calls; calls == s.calls;) {
        OK(hf_lock_release(lock, E)); /* the call for the grant may be late */
        COMES(is_seen(c, &s, calls));
        OK(hf_lock_acquire(lock, NULL, E));
    }
    COMES(shows(c, &s, name, 1));
    OK(hf_lock_release(lock, E));
    COMES(shows(c, &s, name, 0));
}

static size_t waiters(hf_client *c, const char *name, bool *unknown)
{
    hf_info *info;
    size_t len;

    info = conf_inspect(c, name);
    len = info->waiters_len;
    *unknown = info->waiters_unknown;
    return len;
}

/* The beginning and the end of a wait are changes. */
CONF_CASE(test_watch_hears_waiters, CONF_EACH | CONF_WATCH)
{
    struct conf_taker t = {0};
    struct seen s;
    bool unknown;
    unsigned before;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    OK(hf_lock_acquire(g.l[1], NULL, E));
    assert_int_equal(waiters(g.c[0], g.name, &unknown), 0);
    watch(g.c[0], g.name, 0, &s);
    conf_taker_start(&t, g.l[2]);
    if (!unknown)
        COMES(is_seen(g.c[0], &s, 0) && waiters(g.c[0], g.name, &unknown) == 1);
    before = s.calls;
    OK(hf_lock_release(g.l[1], E));
    conf_taker_end(&t);
    COMES(is_seen(g.c[0], &s, before));
}

/* The end of a lease and a broken hold are changes. */
CONF_CASE(test_watch_hears_the_end_of_a_hold,
          CONF_EACH | CONF_LEASE | CONF_WATCH)
{
    struct seen s;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct conf_group g = conf_group(HF_MUTEX, 0, HF_OWNER_HANDLE);

    watch(g.c[0], g.name, 0, &s);
    opt.lease_ms = 300;
    OK(hf_lock_acquire(g.l[1], &opt, E));
    COMES(is_seen(g.c[0], &s, 0));
    COMES(shows(g.c[0], &s, g.name, 0));
    hf_lock_release(g.l[1], NULL);
    OK(hf_lock_acquire(g.l[2], NULL, E));
    COMES(shows(g.c[0], &s, g.name, 1));
    OK(hf_break(g.c[1], g.name, HF_CSTRING, E));
    COMES(shows(g.c[0], &s, g.name, 0));
    hf_lock_release(g.l[2], NULL);
}

CONF_CASE(test_watch_hears_readers, CONF_RWLOCK | CONF_EACH | CONF_WATCH)
{
    struct seen s;
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    watch(g.c[0], g.name, 0, &s);
    OK(conf_take(g.l[1], HF_READ, 0, HF_FOREVER));
    COMES(shows(g.c[0], &s, g.name, 1));
    OK(conf_take(g.l[2], HF_READ, 0, HF_FOREVER));
    COMES(shows(g.c[0], &s, g.name, 2));
    OK(hf_lock_release(g.l[1], E));
    COMES(shows(g.c[0], &s, g.name, 1));
    OK(hf_lock_release(g.l[2], E));
    COMES(shows(g.c[0], &s, g.name, 0));
}

CONF_CASE(test_watch_hears_permits, CONF_SEMAPHORE | CONF_WATCH)
{
    struct seen s;
    struct conf_group g = conf_group(HF_SEMAPHORE, 3, 0);

    watch(g.c[0], g.name, 0, &s);
    for (int i = 0; i < 2; i++) {
        OK(conf_take(g.l[1], HF_WRITE, 1, HF_FOREVER));
        COMES(shows(g.c[0], &s, g.name, 1));
        OK(conf_take(g.l[2], HF_WRITE, 2, HF_FOREVER));
        COMES(shows(g.c[0], &s, g.name, 2));
        OK(hf_lock_release(g.l[1], E));
        COMES(shows(g.c[0], &s, g.name, 1));
        OK(hf_lock_release(g.l[2], E));
        COMES(shows(g.c[0], &s, g.name, 0));
    }
}

static bool counts(hf_client *c, const struct seen *s, unsigned *calls,
                   const char *name, uint64_t n)
{
    if (!is_seen(c, s, *calls))
        return false;
    *calls = s->calls;
    return conf_inspect(c, name)->count == n;
}

CONF_CASE(test_watch_hears_counts, CONF_LATCH | CONF_WATCH)
{
    hf_client *c = conf_open(), *other = conf_open();
    const char *name = conf_name();
    hf_latch *latch = conf_latch(other, name);
    unsigned calls = 0;
    struct seen s;

    watch(c, name, 0, &s);
    OK(hf_latch_set(latch, 2, E));
    COMES(counts(c, &s, &calls, name, 2));
    OK(hf_latch_down(latch, NULL, E));
    COMES(counts(c, &s, &calls, name, 1));
    OK(hf_latch_down(latch, NULL, E));
    COMES(counts(c, &s, &calls, name, 0));
}

/* A change wakes the program's event loop. */
CONF_CASE(test_watch_makes_the_descriptor_readable, CONF_WATCH)
{
    struct seen s;
    struct pollfd p = {.events = POLLIN};
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    p.fd = hf_client_fd(g.c[0]);
    assert_true(p.fd >= 0);
    watch(g.c[0], g.name, 0, &s);
    OK(hf_lock_acquire(g.l[1], NULL, E));
    COMES(poll(&p, 1, 0) == 1 && is_seen(g.c[0], &s, 0));
    OK(hf_lock_release(g.l[1], E));
}

static void see_and_free(void *arg, hf_watch *watch, const char *name,
                         size_t len)
{
    struct seen *s = arg;

    s->calls++;
    s->freed = hf_watch_free(watch);
}

CONF_CASE(test_watch_is_freed_by_its_callback, CONF_WATCH)
{
    struct seen s = {.freed = 1}, after;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    OK(hf_watch_new(g.c[0], g.name, HF_CSTRING, 0, see_and_free, &s, &s.watch,
                    E));
    OK(hf_lock_acquire(g.l[1], NULL, E));
    COMES(is_seen(g.c[0], &s, 0));
    assert_int_equal(s.freed, 0);
    watch(g.c[0], g.name, 0, &after);
    OK(hf_lock_release(g.l[1], E));
    COMES(is_seen(g.c[0], &after, 0));
    assert_int_equal(s.calls, 1);
}

struct stuck {
    struct seen seen;
    hf_client *c;
    uint32_t inside, go; /* atomic */
};

static void be_stuck(void *arg, hf_watch *watch, const char *name, size_t len)
{
    struct stuck *s = arg;

    __atomic_store_n(&s->inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&s->go, __ATOMIC_ACQUIRE))
        wait_tick();
    __atomic_store_n(&s->inside, 0, __ATOMIC_RELEASE);
}

static void dispatch_once(void *arg)
{
    struct stuck *s = arg;

    while (!__atomic_load_n(&s->inside, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&s->go, __ATOMIC_ACQUIRE)) {
        hf_client_dispatch(s->c);
        wait_tick();
    }
}

CONF_CASE(test_watch_is_busy_while_its_callback_runs, CONF_WATCH)
{
    struct stuck s = {0};
    struct conf_thread t;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    s.c = g.c[0];
    OK(hf_watch_new(s.c, g.name, HF_CSTRING, 0, be_stuck, &s, &s.seen.watch,
                    E));
    conf_thread_start(&t, dispatch_once, &s);
    OK(hf_lock_acquire(g.l[1], NULL, E));
    COMES(__atomic_load_n(&s.inside, __ATOMIC_ACQUIRE));
    EXPECT(HF_EBUSY, hf_watch_free(s.seen.watch));
    __atomic_store_n(&s.go, 1, __ATOMIC_RELEASE);
    conf_thread_join(&t);
    OK(hf_lock_release(g.l[1], E));
    OK(hf_watch_free(s.seen.watch));
}

/* After the close, changes are no longer reported, but the program must still
 * free each watch. */
CONF_CASE(test_watch_outlives_its_client, CONF_WATCH)
{
    struct seen s, other;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    watch(g.c[0], g.name, 0, &s);
    watch(g.c[0], conf_name(), 0, &other);
    OK(hf_lock_acquire(g.l[1], NULL, E));
    OK(hf_lock_release(g.l[1], E));
    conf_free(g.l[0]);
    conf_close(g.c[0]);
    assert_int_equal(s.calls, 0);
}

CONF_CASE(test_watch_says_when_it_is_forked, CONF_WATCH)
{
    hf_client *c = conf_open();
    struct seen s;
    int status;
    pid_t pid;

    watch(c, conf_name(), 0, &s);
    pid = fork();
    if (pid == 0)
        _exit(hf_watch_free(s.watch) == HF_EFORK &&
                      hf_watch_new(c, "n", 1, 0, see, &s, &s.watch, NULL) ==
                          HF_EFORK
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* The callback is passed the name that changed, if only one did. Names with
 * another prefix cause no call. */
CONF_CASE(test_watch_hears_a_prefix, CONF_WATCH | CONF_PREFIX)
{
    hf_client *c = conf_open(), *other = conf_open();
    char prefix[128], name[2][160];
    hf_lock *lock[3];
    struct seen s, all;

    snprintf(prefix, sizeof(prefix), "%s-*[a?", conf_name());
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof(name[i]), "%s%d", prefix, i);
        lock[i] = conf_lock(other, name[i]);
    }
    lock[2] = conf_lock(other, conf_name());
    watch(c, prefix, HF_WATCH_PREFIX, &s);
    watch(c, NULL, HF_WATCH_PREFIX, &all);
    OK(hf_lock_acquire(lock[2], NULL, E));
    COMES(is_seen(c, &all, 0));
    OK(hf_lock_acquire(lock[0], NULL, E));
    COMES(is_seen(c, &s, 0));
    assert_int_equal(s.calls, 1);
    assert_string_equal(s.name, name[0]);
    /* Two changes may cause one call, which then has no name. */
    OK(hf_lock_acquire(lock[1], NULL, E));
    OK(hf_lock_release(lock[0], E));
    COMES(is_seen(c, &s, 1) && (!s.name[0] || strcmp(s.name, name[0]) == 0));
    for (int i = 1; i < 3; i++)
        OK(hf_lock_release(lock[i], E));
    COMES(is_seen(c, &s, 1) && (!s.name[0] || strcmp(s.name, name[1]) == 0));
}
