/* The parts of the public interface that do not depend on a backend: numbers
 * that never change, hooks, sizes, modules, and the sources of a password. */
#include "../../lib/shm_dir.h"
#include "../cases.h"
#include "../options.h"

#include <holdfast.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

static char dir[64], url[128];

static int setup(void **state)
{
    if (!shm_dir_make(dir, sizeof(dir), "holdfast-api"))
        return -1;
    snprintf(url, sizeof(url), "shm://%s/shm", dir);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    return system(command);
}

CASE(test_api_numbers_never_change)
{
    assert_int_equal(HF_EBUSY, -1);
    assert_int_equal(HF_ETIMEDOUT, -2);
    assert_int_equal(HF_ECANCELED, -3);
    assert_int_equal(HF_ELOST, -4);
    assert_int_equal(HF_ENOTOWNER, -5);
    assert_int_equal(HF_EUNKNOWN, -6);
    assert_int_equal(HF_EBACKEND, -7);
    assert_int_equal(HF_EAUTH, -8);
    assert_int_equal(HF_EINVAL, -9);
    assert_int_equal(HF_ENOTSUP, -10);
    assert_int_equal(HF_EMISMATCH, -11);
    assert_int_equal(HF_EDEADLK, -12);
    assert_int_equal(HF_ENOMEM, -13);
    assert_int_equal(HF_EFORK, -14);
    assert_int_equal(HF_ECLOSED, -15);
    assert_int_equal(HF_EPROTO, -16);
    assert_string_equal(hf_error_name(0), "HF_OK");
    assert_string_equal(hf_error_name(HF_EPROTO), "HF_EPROTO");
    assert_string_equal(hf_error_name(-17), "HF_E?");
    assert_string_equal(hf_error_name(99), "HF_E?");
}

CASE(test_api_version)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d.%d", HF_VERSION_MAJOR, HF_VERSION_MINOR,
             HF_VERSION_PATCH);
    assert_string_equal(hf_version(), text);
}

CASE(test_api_options_begin_with_their_size)
{
    const hf_client_options client = HF_CLIENT_OPTIONS_INIT;
    const hf_lock_options lock = HF_LOCK_OPTIONS_INIT;
    const hf_acquire_options acquire = HF_ACQUIRE_OPTIONS_INIT;
    hf_cancel a = HF_CANCEL_INIT, b;

    assert_int_equal(client.size, sizeof(client));
    assert_int_equal(lock.size, sizeof(lock));
    assert_int_equal(lock.kind, HF_MUTEX);
    assert_int_equal(acquire.size, sizeof(acquire));
    assert_int_equal(acquire.wait_ms, HF_FOREVER);
    assert_int_equal(acquire.mode, HF_WRITE);
    hf_cancel_init(&b);
    assert_int_equal(a.word, b.word);
    assert_ptr_equal(a.client, b.client);
    hf_cancel_fire(&a); /* there is no waiter */
}

struct memory {
    long blocks, bytes;
    bool none; /* allocations fail */
};

static void *count_alloc(void *ctx, size_t size)
{
    struct memory *m = ctx;
    size_t *p = m->none ? NULL : malloc(size + 16);

    if (!p)
        return NULL;
    *p = size;
    __atomic_add_fetch(&m->blocks, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&m->bytes, (long)size, __ATOMIC_RELAXED);
    return (char *)p + 16;
}

static void count_free(void *ctx, void *p)
{
    struct memory *m = ctx;
    size_t *block = (size_t *)(void *)((char *)p - 16);

    __atomic_sub_fetch(&m->blocks, 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&m->bytes, (long)*block, __ATOMIC_RELAXED);
    free(block);
}

CASE(test_api_memory_of_an_idle_handle)
{
    enum { MANY = 2000 };
    static hf_lock *lock[MANY];
    struct memory m = {0, 0, false};
    hf_hooks hooks = {&m, count_alloc, count_free, NULL};
    hf_client_options opt = CLIENT_OPTIONS(.hooks = &hooks);
    hf_client *c = NULL;
    long before;
    char name[32];

    assert_int_equal(hf_open(url, &opt, &c, NULL), 0);
    before = m.bytes;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "idle-handle-%d", i);
        assert_int_equal(hf_lock_new(c, name, HF_CSTRING, NULL, &lock[i], NULL),
                         0);
    }
    /* The limit includes each lock's name and its share of the tables. */
    assert_true((m.bytes - before) / MANY < 512);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf_lock_free(lock[i]), 0);
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(m.blocks, 0);
    assert_int_equal(m.bytes, 0);
}

/* Any number of holds can be released without allocating memory. */
CASE(test_api_releases_all_without_memory)
{
    enum { MANY = 21 };
    hf_part parts[MANY] = {{0}};
    struct memory m = {0, 0, false};
    hf_hooks hooks = {&m, count_alloc, count_free, NULL};
    hf_client_options opt = CLIENT_OPTIONS(.hooks = &hooks);
    hf_client *c = NULL;
    char name[32];

    assert_int_equal(hf_open(url, &opt, &c, NULL), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "part-%d", i);
        assert_int_equal(
            hf_lock_new(c, name, HF_CSTRING, NULL, &parts[i].lock, NULL), 0);
    }
    assert_int_equal(hf_lock_acquire_all(parts, MANY, NULL, NULL), 0);
    m.none = true;
    assert_int_equal(hf_lock_release_all(parts, MANY, NULL), 0);
    assert_int_equal(hf_lock_release_all(parts, MANY, NULL), HF_ENOTOWNER);
    m.none = false;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf_lock_free(parts[i].lock), 0);
    assert_int_equal(hf_close(c), 0);
}

/* A pair of hooks without alloc or without free cannot work: the library
 * ignores both. */
CASE(test_api_half_a_pair_of_hooks_is_not_used)
{
    struct memory m = {0, 0, false};
    hf_hooks only_alloc = {&m, count_alloc, NULL, NULL};
    hf_hooks only_free = {&m, NULL, count_free, NULL};
    hf_client_options opt = CLIENT_OPTIONS(.hooks = &only_alloc);
    hf_client *c = NULL;

    assert_int_equal(hf_open(url, &opt, &c, NULL), 0);
    assert_int_equal(hf_close(c), 0);
    opt.hooks = &only_free;
    assert_int_equal(hf_open(url, &opt, &c, NULL), 0);
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(m.blocks, 0);
}

CASE(test_api_error_texts_are_cut_not_overrun)
{
    struct {
        hf_error err;
        char after[16];
    } guarded;
    char long_url[2048];
    hf_client *c;

    memset(&guarded, 'x', sizeof(guarded));
    memset(long_url, 'u', sizeof(long_url));
    memcpy(long_url, "shm:?password_file=", 19);
    long_url[sizeof(long_url) - 1] = '\0';
    assert_int_equal(hf_open(long_url, NULL, &c, &guarded.err), HF_EINVAL);
    assert_int_equal(strlen(guarded.err.text), sizeof(guarded.err.text) - 1);
    for (size_t i = 0; i < sizeof(guarded.after); i++)
        assert_int_equal(guarded.after[i], 'x');
}

CASE(test_api_prefix_must_leave_room)
{
    char text[1024];
    hf_error err = HF_ERROR_INIT;
    hf_client *c;

    snprintf(text, sizeof(text), "%s?prefix=", url);
    memset(text + strlen(text), 'p', HF_NAME_MAX);
    text[strlen(url) + 8 + HF_NAME_MAX] = '\0';
    assert_int_equal(hf_open(text, NULL, &c, &err), HF_EINVAL);
    assert_non_null(strstr(err.text, "prefix"));
}

/* If a password file cannot be read, the error names the file and never quotes
 * its contents. */
CASE(test_api_password_file)
{
    char path[128], text[512];
    hf_error err = HF_ERROR_INIT;
    hf_client *c = NULL;
    int fd;

    snprintf(path, sizeof(path), "%s/none", dir);
    snprintf(text, sizeof(text), "%s?password_file=%s", url, path);
    assert_int_equal(hf_open(text, NULL, &c, &err), HF_EINVAL);
    assert_non_null(strstr(err.text, path));
    assert_null(c);
    snprintf(text, sizeof(text), "%s?password_file=%s", url, dir);
    assert_int_equal(hf_open(text, NULL, &c, &err), HF_EINVAL);
    snprintf(path, sizeof(path), "%s/password", dir);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "s3cret\n", 7), 7);
    close(fd);
    snprintf(text, sizeof(text), "%s?password_file=%s", url, path);
    assert_int_equal(hf_open(text, NULL, &c, &err), 0);
    assert_int_equal(hf_close(c), 0);
}

static void write_module(const char *path, const char *content)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

/* The first file found on HOLDFAST_MODULE_PATH is not a module: hf_open() fails
 * with an error. */
CASE(test_api_module_that_is_none)
{
    char path[128];
    hf_error err = HF_ERROR_INIT;
    hf_client *c = NULL;
    int rc;

    snprintf(path, sizeof(path), "%s/redis.so", dir);
    write_module(path, "this is no shared object");
    setenv("HOLDFAST_MODULE_PATH", dir, 1);
    rc = hf_open("redis://127.0.0.1:1?connect_timeout=100ms", NULL, &c, &err);
    unsetenv("HOLDFAST_MODULE_PATH");
    unlink(path);
    /* hf_open() may find the real module in another directory. It fails then
     * too, because no server listens on that port. */
    assert_int_equal(rc, HF_EBACKEND);
    assert_null(c);
    assert_true(err.text[0] != '\0');
}

static void count_event(void *arg, const hf_event *e)
{
    ++*(int *)arg;
}

/* A lease of the minimum length is longer than its safety margin: its deadline
 * is later than the grant. */
CASE(test_api_the_least_lease_can_be_held)
{
    hf_acquire_options fixed = HF_ACQUIRE_OPTIONS_INIT;
    char least[160];
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    struct timespec before;
    int64_t deadline = 0;
    int rc = HF_ELOST;

    snprintf(least, sizeof(least), "%s?ttl=%dms", url, HF_LEASE_MIN_MS);
    assert_int_equal(hf_open(least, NULL, &c, NULL), 0);
    assert_int_equal(hf_lock_new(c, "least", HF_CSTRING, NULL, &lock, NULL), 0);
    fixed.lease_ms = HF_LEASE_MIN_MS;
    while (rc == HF_ELOST) { /* this process may have been stopped */
        clock_gettime(CLOCK_BOOTTIME, &before);
        assert_int_equal(hf_lock_acquire(lock, &fixed, NULL), 0);
        rc = hf_lock_deadline(lock, &deadline);
        hf_lock_release(lock, NULL);
    }
    assert_int_equal(rc, 0);
    assert_true(deadline > before.tv_sec * 1000000000LL + before.tv_nsec);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

/* A program that never dispatches loses events, not memory. 1100 holds are
 * lost. One dispatch then reports the loss that the line stores and the 1024
 * losses in the queue. One more event reports that the other losses were
 * dropped. */
CASE(test_api_events_have_a_limit)
{
    hf_acquire_options fixed = ACQUIRE_OPTIONS(.lease_ms = HF_LEASE_MIN_MS);
    struct memory m = {0, 0, false};
    hf_hooks hooks = {&m, count_alloc, count_free, NULL};
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    int events = 0;
    hf_client_options opt =
        CLIENT_OPTIONS(.hooks = &hooks, .on_event = count_event,
                       .event_arg = &events);

    assert_int_equal(hf_open(url, &opt, &c, NULL), 0);
    assert_int_equal(hf_lock_new(c, "events", HF_CSTRING, NULL, &lock, NULL),
                     0);
    for (int i = 0; i < 1100; i++) {
        assert_int_equal(hf_lock_acquire(lock, &fixed, NULL), 0);
        while (hf_lock_check(lock) == 0)
            usleep(100);
        assert_int_equal(hf_lock_release(lock, NULL), HF_ELOST);
    }
    assert_int_equal(hf_client_dispatch(c), 1 + 1024 + 1);
    assert_int_equal(events, 1 + 1024 + 1);
    assert_int_equal(hf_client_dispatch(c), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(m.blocks, 0);
}

/* Asserts that a call failed with `code` and exactly this error text. */
static void says(int rc, int code, const hf_error *err, const char *text)
{
    assert_int_equal(rc, code);
    assert_int_equal(err->code, code);
    assert_string_equal(err->text, text);
}

CASE(test_api_texts_of_kinds)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock = NULL, *other = NULL;
    hf_client *c;

    assert_int_equal(hf_open(url, NULL, &c, &err), 0);
    opt.kind = HF_RWLOCK;
    opt.fairness = HF_UNFAIR;
    says(hf_lock_new(c, "a", 1, &opt, &lock, &err), HF_ENOTSUP, &err,
         "the shm backend has no unfair read-write lock with this URL, only a "
         "fair one");
    opt.kind = HF_SEMAPHORE;
    opt.fairness = HF_FAIR_DEFAULT;
    says(hf_lock_new(c, "a", 1, &opt, &lock, &err), HF_EINVAL, &err,
         "permits is 0; it must be 1 or more for a semaphore, and 0 for any "
         "other "
         "lock");
    opt.permits = 3;
    assert_int_equal(hf_lock_new(c, "a", 1, &opt, &lock, &err), 0);
    says(hf_lock_new(c, "a", 1, NULL, &other, &err), HF_EMISMATCH, &err,
         "this client uses the name \"a\" as a fair semaphore of 3 permits "
         "already");
    says(hf_ask(c, "a", 1, &err), HF_ENOTOWNER, &err, "\"a\" is not held");
    says(hf_lock_put(lock, "k", 1, "v", 1, &err), HF_ENOTSUP, &err,
         "the shm backend has no guarded writes (HF_CAP_PUT)");
    says(hf_lock_put(lock, "k", 1, NULL, 1, &err), HF_EINVAL, &err,
         "value is NULL, and value_len is 1; it must be 0");
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

CASE(test_api_texts_of_a_latch)
{
    hf_error err = HF_ERROR_INIT;
    hf_latch *latch;
    hf_client *c;

    assert_int_equal(hf_open(url, NULL, &c, &err), 0);
    assert_int_equal(hf_latch_new(c, "l", 1, &latch, &err), 0);
    assert_int_equal(hf_latch_set(latch, 2, &err), 0);
    says(hf_latch_set(latch, 2, &err), HF_EBUSY, &err,
         "the latch is set already: 2 left");
    says(hf_latch_wait(latch, 0, NULL, &err), HF_EBUSY, &err,
         "\"l\" is not at 0");
    says(hf_latch_wait(latch, 1, NULL, &err), HF_ETIMEDOUT, &err,
         "\"l\" has not reached 0 within 1 ms");
    assert_int_equal(hf_break(c, "l", 1, &err), 0);
    assert_int_equal(hf_latch_wait(latch, 0, NULL, &err), 0);
    assert_int_equal(hf_latch_free(latch), 0);
    assert_int_equal(hf_close(c), 0);
}

CASE(test_api_texts_of_several)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock_options by_handle = LOCK_OPTIONS(.flags = HF_OWNER_HANDLE);
    hf_error err = HF_ERROR_INIT;
    hf_part parts[2] = {{NULL}, {NULL}};
    hf_lock *held;
    hf_client *c;

    assert_int_equal(hf_open(url, NULL, &c, &err), 0);
    assert_int_equal(hf_lock_new(c, "b", 1, &by_handle, &held, &err), 0);
    assert_int_equal(hf_lock_acquire(held, NULL, &err), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            hf_lock_new(c, i ? "b" : "a", 1, NULL, &parts[i].lock, &err), 0);
    opt.wait_ms = 0;
    says(hf_lock_acquire_all(parts, 2, &opt, &err), HF_EBUSY, &err,
         "\"b\" is held by another thread or handle of this client");
    says(hf_lock_acquire_all(parts, 0, &opt, &err), HF_EINVAL, &err,
         "no locks were given; there must be at least one part");
    opt.permits = 2;
    says(hf_lock_acquire(parts[0].lock, &opt, &err), HF_EINVAL, &err,
         "permits is 2, and the lock is no semaphore; it must be 0");
    assert_int_equal(hf_lock_release(held, &err), 0);
    assert_int_equal(hf_lock_free(held), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_lock_free(parts[i].lock), 0);
    assert_int_equal(hf_close(c), 0);
}

CASES_MAIN(setup, teardown);
