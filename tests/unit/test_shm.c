/*
 * The shared-memory backend: what is in its file and who may be there, limits,
 * deaths, and the ways of waiting. What every backend must do is tested by the
 * conformance suite; killing at random and at every step, in tests/faults.
 */
#include "../lib/sanitized.h"
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Within which a death is noticed. */
#define DEATH_MS (SANITIZED ? 2000 : 100)

struct place {
    char dir[64], file[80], url[128];
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void nap_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    const char *tmp = getenv("TMPDIR");

    snprintf(p->dir, sizeof(p->dir), "%s/test_shm.XXXXXX",
             tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(p->dir)) {
        free(p);
        return -1;
    }
    snprintf(p->file, sizeof(p->file), "%s/locks", p->dir);
    snprintf(p->url, sizeof(p->url), "shm://%s", p->dir);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    unlink(p->file);
    if (rmdir(p->dir))
        unlink(p->dir);
    free(p);
    return 0;
}

static hf_client *open_client(const char *url)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    int rc = hf_open(url, NULL, &client, &err);

    if (rc)
        fail_msg("%s: %s", url, err.text);
    return client;
}

static hf_lock *make_lock(hf_client *client, const char *name, bool fair)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;

    opt.fairness = fair ? HF_FAIR : HF_UNFAIR;
    if (hf_lock_new(client, name, HF_CSTRING, &opt, &lock, &err))
        fail_msg("%s: %s", name, err.text);
    return lock;
}

static void assert_refused(const char *url, int code, const char *text)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;

    assert_int_equal(hf_open(url, NULL, &client, &err), code);
    assert_null(client);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

/* Opens it once, so that there is a good file. */
static void make_file(const struct place *p)
{
    hf_close(open_client(p->url));
}

static struct shm_file *map(const struct place *p)
{
    int fd = open(p->file, O_RDWR | O_CLOEXEC);
    struct shm_file *f =
        mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    close(fd);
    assert_true(f != MAP_FAILED);
    return f;
}

static uint64_t token_once(const char *url, const char *name)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_lock(client, name, true);
    uint64_t token = 0;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    assert_int_equal(hf_lock_token(lock, &token), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(client), 0);
    return token;
}

/* ---- the file ----------------------------------------------------------- */

static void test_file_is_private_by_default(void **state)
{
    struct place *p = *state;
    struct stat st;

    rmdir(p->dir);
    make_file(p);
    assert_int_equal(stat(p->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, sizeof(struct shm_file));
}

static void test_file_is_a_groups_if_asked(void **state)
{
    struct place *p = *state;
    char url[200];
    struct stat st;
    mode_t old = umask(077);

    rmdir(p->dir);
    snprintf(url, sizeof(url), "%s?mode=0660&group=%u", p->url,
             (unsigned)getegid());
    hf_close(open_client(url));
    umask(old);
    assert_int_equal(stat(p->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0770);
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    hf_close(open_client(url));
    assert_refused(p->url, HF_EBACKEND, "its group may write");
}

static void test_bad_options_are_refused(void **state)
{
    struct place *p = *state;
    char url[200];

    snprintf(url, sizeof(url), "%s?mode=0666", p->url);
    assert_refused(url, HF_EINVAL, "mode=0666");
    snprintf(url, sizeof(url), "%s?mode=6x", p->url);
    assert_refused(url, HF_EINVAL, "mode=6x");
    snprintf(url, sizeof(url), "%s?group=no-such-group", p->url);
    assert_refused(url, HF_EINVAL, "no-such-group");
    snprintf(url, sizeof(url), "%s?waitv=perhaps", p->url);
    assert_refused(url, HF_EINVAL, "waitv=perhaps");
    snprintf(url, sizeof(url), "%s?dialect=string", p->url);
    assert_refused(url, HF_EINVAL, "dialect");
    assert_refused("shm://host/directory", HF_EINVAL, "no host");
}

static void test_bad_directories_are_refused(void **state)
{
    struct place *p = *state;
    char url[200], path[100];

    chmod(p->dir, 0777);
    assert_refused(p->url, HF_EBACKEND, "others may write");
    chmod(p->dir, 01777);
    assert_refused(p->url, HF_EBACKEND, "others may write");
    chmod(p->dir, 0770);
    assert_refused(p->url, HF_EBACKEND, "its group may write");
    chmod(p->dir, 0700);
    snprintf(path, sizeof(path), "%s.link", p->dir);
    assert_int_equal(symlink(p->dir, path), 0);
    snprintf(url, sizeof(url), "shm://%s", path);
    assert_refused(url, HF_EBACKEND, "symbolic link");
    snprintf(url, sizeof(url), "shm://%s/", path);
    assert_refused(url, HF_EBACKEND, "symbolic link");
    unlink(path);
    close(creat(p->file, 0600));
    snprintf(url, sizeof(url), "shm://%s", p->file);
    assert_refused(url, HF_EBACKEND, "not a directory");
    assert_refused("shm:///no/such/parent", HF_EBACKEND, "/no/such/parent");
}

static void test_a_stranger_s_directory_is_refused(void **state)
{
    struct place *p = *state;

    if (geteuid() != 0)
        skip(); /* only root can make one */
    assert_int_equal(chown(p->dir, 4242, (gid_t)-1), 0);
    assert_refused(p->url, HF_EBACKEND, "belongs to user 4242");
    assert_int_equal(chown(p->dir, 0, (gid_t)-1), 0);
    make_file(p);
    assert_int_equal(chown(p->file, 4242, (gid_t)-1), 0);
    assert_refused(p->url, HF_EBACKEND, "belongs to user 4242");
    assert_refused(p->url, HF_EBACKEND, p->file);
}

static void test_bad_files_are_refused(void **state)
{
    struct place *p = *state;
    char path[100];

    assert_int_equal(symlink("/dev/null", p->file), 0);
    assert_refused(p->url, HF_EBACKEND, "symbolic link");
    unlink(p->file);
    assert_int_equal(mkfifo(p->file, 0600), 0);
    assert_refused(p->url, HF_EBACKEND, "not a regular file");
    unlink(p->file);
    make_file(p);
    chmod(p->file, 0644);
    assert_refused(p->url, HF_EBACKEND, "has mode 0644");
    chmod(p->file, 0600);
    snprintf(path, sizeof(path), "%s.second", p->dir);
    assert_int_equal(link(p->file, path), 0);
    assert_refused(p->url, HF_EBACKEND, "hard link");
    unlink(path);
    assert_int_equal(truncate(p->file, 4096), 0);
    assert_refused(p->url, HF_EBACKEND, "truncated");
    assert_refused(p->url, HF_EBACKEND, p->file);
}

static void test_bad_headers_are_refused(void **state)
{
    struct place *p = *state;
    struct shm_file *f;

    make_file(p);
    f = map(p);
    atomic_store(&f->header.magic, 1234);
    assert_refused(p->url, HF_EBACKEND, "wrong magic");
    atomic_store(&f->header.magic, SHM_MAGIC);
    f->header.size--;
    assert_refused(p->url, HF_EBACKEND, "another size");
    assert_refused(p->url, HF_EBACKEND, p->file);
    munmap(f, sizeof(*f));
}

static void test_file_of_another_version_starts_anew_if_unused(void **state)
{
    struct place *p = *state;
    uint64_t token = token_once(p->url, "x");
    int fd = open(p->file, O_RDWR | O_CLOEXEC);
    uint32_t version = 77;

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &version, sizeof(version),
                            offsetof(struct shm_header, version)),
                     sizeof(version));
    assert_int_equal(ftruncate(fd, 8192), 0); /* its layout was another, too */
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_refused(p->url, HF_EBACKEND, "layout 77");
    close(fd);
    assert_true(token_once(p->url, "x") > token);
}

static void test_file_of_an_earlier_boot_starts_anew(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p), *copy = malloc(sizeof(*f));
    uint64_t token;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    memcpy(copy, f, sizeof(*f)); /* as it would be after a crash: held */
    hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
    memcpy(copy->header.boot, "another", 7);
    atomic_store(&copy->entry[0].epoch, 1ULL << 30); /* ahead of the clock */
    memcpy(f, copy, sizeof(*f));
    token = token_once(p->url, "x");
    assert_true(token >> SHM_EPOCH_SHIFT >= 1ULL << 30);
    munmap(f, sizeof(*f));
    free(copy);
}

static void test_another_pid_namespace_is_refused_while_in_use(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);

    f->header.pid_ns ^= 1;
    assert_refused(p->url, HF_EBACKEND, "another pid namespace");
    hf_close(client);
    assert_true(token_once(p->url, "x") > 0);
    munmap(f, sizeof(*f));
}

static void test_many_open_a_new_file_at_once(void **state)
{
    struct place *p = *state;
    int status, bad = 0;

    for (int round = 0; round < 5; round++) {
        unlink(p->file);
        for (int i = 0; i < 16; i++)
            if (!fork()) {
                hf_client *client;

                _exit(hf_open(p->url, NULL, &client, NULL) ? 1
                                                           : hf_close(client));
            }
        while (wait(&status) > 0)
            bad += status != 0;
    }
    assert_int_equal(bad, 0);
}

static void test_deleted_file_is_noticed(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *other;
    hf_error err = HF_ERROR_INIT;
    uint64_t before = 0, after;
    int64_t until = now_ms() + 2000;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    hf_lock_token(lock, &before);
    assert_int_equal(unlink(p->file), 0);
    after = token_once(p->url, "x");
    assert_true(after > before);
    assert_int_equal(hf_lock_new(client, "y", 1, NULL, &other, &err),
                     HF_EBACKEND);
    assert_non_null(strstr(err.text, "deleted"));
    while (!hf_lock_check(lock) && now_ms() < until)
        nap_ms(1);
    assert_int_equal(hf_lock_check(lock), HF_ELOST);
    hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
}

/* ---- limits ------------------------------------------------------------- */

static void test_4096_names_and_no_more(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock **locks = calloc(SHM_NAMES, sizeof(*locks)), *more;
    hf_error err = HF_ERROR_INIT;
    char name[32];

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        snprintf(name, sizeof(name), "name-%u", i);
        locks[i] = make_lock(client, name, i % 2);
        assert_int_equal(hf_lock_acquire(locks[i], NULL, NULL), 0);
    }
    assert_int_equal(hf_lock_new(client, "more", 4, NULL, &more, &err),
                     HF_EBACKEND);
    assert_non_null(strstr(err.text, "4096 names"));
    assert_int_equal(hf_lock_release(locks[1000], NULL), 0);
    assert_int_equal(hf_lock_free(locks[1000]), 0);
    assert_int_equal(hf_lock_new(client, "more", 4, NULL, &more, &err), 0);
    hf_lock_free(more);
    for (unsigned i = 0; i < SHM_NAMES; i++)
        if (i != 1000) {
            hf_lock_release(locks[i], NULL);
            hf_lock_free(locks[i]);
        }
    free(locks);
    hf_close(client);
}

static void take_all_names(const char *url)
{
    hf_client *client = open_client(url);
    char name[32];

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        snprintf(name, sizeof(name), "theirs-%u", i);
        if (hf_lock_acquire(make_lock(client, name, true), NULL, NULL))
            _exit(1);
    }
}

static void test_names_of_the_dead_are_taken_back(void **state)
{
    struct place *p = *state;
    hf_client *client;
    hf_lock *lock;
    int status;
    pid_t pid;

    client = open_client(p->url); /* before, so that it does not bury them */
    pid = fork();
    if (!pid) {
        take_all_names(p->url);
        raise(SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    lock = make_lock(client, "mine", false);
    assert_int_equal(hf_lock_try(lock, NULL), 0);
    hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
}

static void test_4095_clients_and_no_more(void **state)
{
    struct place *p = *state;
    struct shm_file *f;
    hf_client *client;

    make_file(p);
    f = map(p);
    /* As if they were there: ours and alive, as far as one can tell. */
    client = open_client(p->url);
    for (unsigned i = 2; i < SHM_SLOTS; i++) {
        memcpy(&f->slot[i].alive, &f->slot[1].alive, sizeof(f->slot[1].alive));
        atomic_store(&f->slot[i].pid, (uint32_t)getpid());
        atomic_store(&f->slot[i].state, SHM_SLOT_USED);
    }
    assert_refused(p->url, HF_EBACKEND, "4095 clients");
    for (unsigned i = 2; i < SHM_SLOTS; i++)
        atomic_store(&f->slot[i].state, SHM_SLOT_FREE);
    hf_close(client);
    munmap(f, sizeof(*f));
}

static void test_4096_waits_and_no_more(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *held = make_lock(client, "x", true);
    hf_lock *wanted = make_lock(other, "x", true);
    struct shm_file *f = map(p);
    hf_error err = HF_ERROR_INIT;

    assert_int_equal(hf_lock_acquire(held, NULL, NULL), 0);
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 1 | 1 << 12);
    assert_int_equal(hf_lock_timed(wanted, 100, &err), HF_EBACKEND);
    assert_non_null(strstr(err.text, "4096 waits"));
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 0);
    assert_int_equal(hf_lock_timed(wanted, 10, &err), HF_ETIMEDOUT);
    hf_lock_release(held, NULL);
    hf_lock_free(held);
    hf_lock_free(wanted);
    hf_close(client);
    hf_close(other);
    munmap(f, sizeof(*f));
}

/* ---- tokens ------------------------------------------------------------- */

static void test_tokens_rise_when_the_name_is_made_again(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    uint64_t last = 0, token = 0;

    for (int i = 0; i < 100; i++) {
        hf_lock *lock = make_lock(client, "x", i % 2);

        for (int j = 0; j < 1000; j++) {
            hf_lock_acquire(lock, NULL, NULL);
            hf_lock_token(lock, &token);
            assert_true(token > last);
            last = token;
            hf_lock_release(lock, NULL);
        }
        hf_lock_free(lock);
    }
    hf_close(client);
    unlink(p->file);
    assert_true(token_once(p->url, "x") > last);
}

static void test_tokens_rise_when_the_count_wraps(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    uint64_t last = 0, token = 0;

    for (int half = 0; half < 4; half++) {
        uint64_t word = atomic_load(&f->entry[0].word);
        uint64_t epoch = atomic_load(&f->entry[0].epoch);

        /* Just before the end of this half of the count's range. */
        atomic_store(&f->entry[0].word,
                     (word & ~SHM_COUNT_MASK) |
                         (((epoch & 1) << 23 | 0x7ffff0) << 40));
        for (int i = 0; i < 40; i++) {
            hf_lock_acquire(lock, NULL, NULL);
            hf_lock_token(lock, &token);
            if (last && i)
                assert_int_equal(token, last + 1);
            last = token;
            hf_lock_release(lock, NULL);
        }
        assert_int_equal(atomic_load(&f->entry[0].epoch), epoch + 1);
    }
    hf_lock_free(lock);
    hf_close(client);
    munmap(f, sizeof(*f));
}

/* ---- deaths ------------------------------------------------------------- */

/* A process that takes the lock and does as it is told. */
static pid_t child_with_lock(const char *url, bool fair, int64_t lease_ms,
                             void (*then)(void))
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int fds[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (!pid) {
        hf_client *client = open_client(url);

        opt.lease_ms = lease_ms;
        if (hf_lock_acquire(make_lock(client, "x", fair), &opt, NULL) ||
            write(fds[1], "", 1) != 1)
            _exit(1);
        then();
        _exit(0);
    }
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static void become_another_program(void)
{
    nap_ms(50);
    execlp("sleep", "sleep", "20", (char *)NULL);
}

struct waiter {
    hf_lock *lock;
    int64_t granted_at;
    int rc;
};

static void *wait_for_lock(void *arg)
{
    struct waiter *w = arg;

    w->rc = hf_lock_timed(w->lock, 10000, NULL);
    w->granted_at = now_ms();
    if (!w->rc)
        hf_lock_release(w->lock, NULL);
    return NULL;
}

struct async {
    int calls, result;
};

static void on_done(void *arg, hf_lock *lock, int result)
{
    struct async *a = arg;

    (void)lock;
    a->calls++;
    a->result = result;
}

static int64_t dispatch_until(hf_client *client, struct async *a, int calls)
{
    struct pollfd poll_fd = {hf_client_fd(client), POLLIN, 0};
    int64_t start = now_ms();

    while (a->calls < calls && now_ms() - start < 5000) {
        poll(&poll_fd, 1, 100);
        hf_client_dispatch(client);
    }
    return now_ms() - start;
}

/* How long after the kill a waiter had the lock. */
static int64_t death_noticed_after(const char *url, bool fair)
{
    pid_t pid = child_with_lock(url, fair, 0, wait_for_ever);
    hf_client *client = open_client(url);
    struct waiter w = {make_lock(client, "x", fair), 0, -1};
    pthread_t thread;
    int64_t at;

    pthread_create(&thread, NULL, wait_for_lock, &w);
    nap_ms(120);
    at = now_ms();
    kill(pid, SIGKILL); /* and not waited for: a zombie */
    pthread_join(thread, NULL);
    waitpid(pid, NULL, 0);
    hf_lock_free(w.lock);
    hf_close(client);
    assert_int_equal(w.rc, 0);
    return w.granted_at - at;
}

static void test_killed_holder_is_noticed(void **state)
{
    struct place *p = *state;
    char url[200];

    assert_in_range(death_noticed_after(p->url, true), 0, DEATH_MS);
    assert_in_range(death_noticed_after(p->url, false), 0, DEATH_MS);
    snprintf(url, sizeof(url), "%s?waitv=no", p->url);
    assert_in_range(death_noticed_after(url, true), 0, DEATH_MS);
    assert_in_range(death_noticed_after(url, false), 0, DEATH_MS);
}

/* Holds y0, y1 ... and then x, or waits for that. */
static pid_t child_with_many(const char *url, int many)
{
    int fds[2];
    char byte, name[16];
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (!pid) {
        hf_client *client = open_client(url);

        for (int i = 0; i < many; i++) {
            snprintf(name, sizeof(name), "y%d", i);
            if (hf_lock_acquire(make_lock(client, name, true), NULL, NULL))
                _exit(1);
        }
        if (write(fds[1], "", 1) != 1)
            _exit(1);
        hf_lock_acquire(make_lock(client, "x", true), NULL, NULL);
        wait_for_ever();
    }
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    close(fds[1]);
    nap_ms(30);
    return pid;
}

/* The kernel wakes one of those who wait for the dead: he tells the others. */
static void test_one_death_is_told_to_all(void **state)
{
    enum { MANY = 24 };
    struct place *p = *state;
    pid_t pid = child_with_many(p->url, MANY);
    hf_client *clients[MANY];
    struct waiter w[MANY];
    pthread_t threads[MANY];
    char name[16];
    int64_t at;

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        clients[i] = open_client(p->url);
        w[i] = (struct waiter){make_lock(clients[i], name, true), 0, -1};
        pthread_create(&threads[i], NULL, wait_for_lock, &w[i]);
    }
    nap_ms(100);
    at = now_ms();
    kill(pid, SIGKILL);
    for (int i = 0; i < MANY; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(w[i].rc, 0);
        assert_in_range(w[i].granted_at - at, 0, DEATH_MS);
        hf_lock_free(w[i].lock);
        hf_close(clients[i]);
    }
    waitpid(pid, NULL, 0);
}

/* It waited for x, and one is behind it; it held y, and one waits for that. */
static void test_death_of_a_waiter_that_holds_another(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url), *clients[2];
    hf_lock *x = make_lock(client, "x", true);
    struct waiter w[2];
    pthread_t threads[2];
    int64_t at;
    pid_t pid;

    assert_int_equal(hf_lock_acquire(x, NULL, NULL), 0);
    pid = child_with_many(p->url, 1);
    for (int i = 0; i < 2; i++) {
        clients[i] = open_client(p->url);
        w[i] =
            (struct waiter){make_lock(clients[i], i ? "y0" : "x", true), 0, -1};
        pthread_create(&threads[i], NULL, wait_for_lock, &w[i]);
        nap_ms(20);
    }
    at = now_ms();
    kill(pid, SIGKILL);
    pthread_join(threads[1], NULL);
    assert_int_equal(w[1].rc, 0);
    assert_in_range(w[1].granted_at - at, 0, DEATH_MS);
    at = now_ms();
    assert_int_equal(hf_lock_release(x, NULL), 0);
    pthread_join(threads[0], NULL);
    assert_int_equal(w[0].rc, 0);
    assert_in_range(w[0].granted_at - at, 0, DEATH_MS);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        hf_lock_free(w[i].lock);
        hf_close(clients[i]);
    }
    hf_lock_free(x);
    hf_close(client);
}

/* The one whom the kernel wakes is stopped: the others look for themselves, and
 * not all at the same moment. */
static void death_beside_a_stopped_one(const char *url, int many)
{
    pid_t pid = child_with_many(url, many), stopped;
    hf_client *clients[16];
    struct waiter w[16];
    pthread_t threads[16];
    char name[16];
    int64_t at;

    stopped = fork();
    if (!stopped) {
        hf_lock_acquire(make_lock(open_client(url), "x", true), NULL, NULL);
        wait_for_ever();
    }
    nap_ms(50);
    for (int i = 0; i < many; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        clients[i] = open_client(url);
        w[i] = (struct waiter){make_lock(clients[i], name, true), 0, -1};
    }
    for (int i = 0; i < many; i++)
        pthread_create(&threads[i], NULL, wait_for_lock, &w[i]);
    nap_ms(50);
    kill(stopped, SIGSTOP);
    nap_ms(450); /* so that all others have looked, and are behind it */
    at = now_ms();
    kill(pid, SIGKILL);
    for (int i = 0; i < many; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(w[i].rc, 0);
        assert_in_range(w[i].granted_at - at, 0, DEATH_MS);
        hf_lock_free(w[i].lock);
        hf_close(clients[i]);
    }
    kill(stopped, SIGKILL);
    waitpid(stopped, NULL, 0);
    waitpid(pid, NULL, 0);
}

static void test_death_while_a_waiter_is_stopped(void **state)
{
    struct place *p = *state;

    death_beside_a_stopped_one(p->url, 1);
    death_beside_a_stopped_one(p->url, 16);
}

/* The one before us has left the queue: we watch the holder from then on. */
static void test_death_after_the_one_before_gave_up(void **state)
{
    struct place *p = *state;
    pid_t pid = child_with_lock(p->url, true, 0, wait_for_ever);
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock_options how = HF_LOCK_OPTIONS_INIT;
    struct waiter w = {make_lock(client, "x", true), 0, -1};
    struct async a = {0, -1};
    pthread_t thread;
    hf_lock *first;
    int64_t at;

    how.flags = HF_OWNER_HANDLE;
    how.fairness = HF_FAIR;
    assert_int_equal(hf_lock_new(other, "x", 1, &how, &first, NULL), 0);
    assert_int_equal(hf_lock_acquire_async(first, NULL, on_done, &a, NULL), 0);
    nap_ms(30);
    pthread_create(&thread, NULL, wait_for_lock, &w);
    nap_ms(30);
    assert_int_equal(hf_lock_cancel(first), 0);
    dispatch_until(other, &a, 1);
    assert_int_equal(a.result, HF_ECANCELED);
    nap_ms(30);
    at = now_ms();
    kill(pid, SIGKILL);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_in_range(w.granted_at - at, 0, DEATH_MS);
    waitpid(pid, NULL, 0);
    hf_lock_free(w.lock);
    hf_lock_free(first);
    hf_close(client);
    hf_close(other);
}

/* The helper thread is gone, the process is not: it may still be writing. */
static void test_a_mark_alone_is_not_a_death(void **state)
{
    struct place *p = *state;
    pid_t pid = child_with_lock(p->url, true, 0, wait_for_ever);
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    unsigned slot = atomic_load(&f->entry[0].word) & SHM_SLOT_MASK;

    atomic_fetch_or((shm_u32 *)&f->slot[slot].alive, FUTEX_OWNER_DIED);
    assert_int_equal(hf_lock_try(lock, NULL), HF_EBUSY);
    assert_int_equal(hf_lock_timed(lock, 50, NULL), HF_ETIMEDOUT);
    kill(pid, SIGKILL);
    assert_int_equal(hf_lock_timed(lock, DEATH_MS, NULL), 0);
    waitpid(pid, NULL, 0);
    hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
    munmap(f, sizeof(*f));
}

static void test_exec_lets_go(void **state)
{
    struct place *p = *state;
    pid_t pid = child_with_lock(p->url, true, 0, become_another_program);
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);

    assert_int_equal(hf_lock_try(lock, NULL), HF_EBUSY);
    assert_int_equal(hf_lock_timed(lock, 5000, NULL), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    waitpid(pid, NULL, 0);
    hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
}

static void test_stopped_holder_keeps_it_unless_its_lease_ends(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);

    for (int leased = 0; leased < 2; leased++) {
        pid_t pid =
            child_with_lock(p->url, true, leased ? 200 : 0, wait_for_ever);

        kill(pid, SIGSTOP);
        assert_int_equal(hf_lock_timed(lock, 50, NULL), HF_ETIMEDOUT);
        assert_int_equal(hf_lock_timed(lock, 1000, NULL),
                         leased ? 0 : HF_ETIMEDOUT);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        if (leased)
            hf_lock_release(lock, NULL);
    }
    hf_lock_free(lock);
    hf_close(client);
}

static void test_a_renewal_never_shortens_the_lease(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_info *info;

    opt.lease_ms = 20000;
    assert_int_equal(hf_lock_acquire(lock, &opt, NULL), 0);
    assert_int_equal(hf_lock_renew(lock, 40000, NULL), 0);
    assert_int_equal(hf_inspect(client, "x", 1, &info, NULL), 0);
    assert_in_range(info->holders[0].left_ms, 39000, 40001);
    hf_info_free(client, info);
    assert_int_equal(hf_lock_renew(lock, 10000, NULL), 0);
    assert_int_equal(hf_inspect(client, "x", 1, &info, NULL), 0);
    assert_in_range(info->holders[0].left_ms, 39000, 40001);
    hf_info_free(client, info);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_lock_free(lock);
    hf_close(client);
}

/* Handed to a waiter that is stopped: its lease ends as well. */
static void test_stopped_waiter_with_lease_holds_nobody_up(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    pid_t pid;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    pid = fork();
    if (!pid) {
        hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
        hf_lock *mine = make_lock(open_client(p->url), "x", true);

        opt.lease_ms = 100;
        hf_lock_acquire(mine, &opt, NULL);
        wait_for_ever();
    }
    while (!(atomic_load(&f->entry[0].word) & SHM_WAITERS))
        nap_ms(1);
    nap_ms(20);
    kill(pid, SIGSTOP);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_timed(lock, 2000, NULL), 0);
    hf_lock_release(lock, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    hf_lock_free(lock);
    hf_close(client);
    munmap(f, sizeof(*f));
}

/* Nor those who stand behind it already. */
static void test_stopped_waiter_with_lease_before_another(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct waiter w = {make_lock(other, "x", true), 0, -1};
    struct shm_file *f = map(p);
    pthread_t thread;
    int64_t at;
    pid_t pid;

    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    pid = fork();
    if (!pid) {
        hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
        hf_lock *mine = make_lock(open_client(p->url), "x", true);

        opt.lease_ms = 300;
        hf_lock_acquire(mine, &opt, NULL);
        wait_for_ever();
    }
    while (!(atomic_load(&f->entry[0].word) & SHM_WAITERS))
        nap_ms(1);
    nap_ms(20);
    kill(pid, SIGSTOP);
    pthread_create(&thread, NULL, wait_for_lock, &w);
    nap_ms(50);
    at = now_ms();
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_in_range(w.granted_at - at, 250, 1000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    hf_lock_free(lock);
    hf_lock_free(w.lock);
    hf_close(client);
    hf_close(other);
    munmap(f, sizeof(*f));
}

/* ---- waiting ------------------------------------------------------------ */

static void *lock_often(void *arg)
{
    hf_lock *lock = arg;

    for (int i = 0; i < 2000; i++) {
        if (hf_lock_timed(lock, 10000, NULL))
            return NULL;
        sched_yield();
        if (hf_lock_release(lock, NULL))
            return NULL;
    }
    return lock;
}

/* Clients of one process are strangers to each other. */
static void contend(const char *url, bool fair)
{
    hf_client *clients[4];
    hf_lock *locks[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        clients[i] = open_client(url);
        locks[i] = make_lock(clients[i], "x", fair);
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, lock_often, locks[i]);
    for (int i = 0; i < 4; i++) {
        void *done = NULL;

        pthread_join(threads[i], &done);
        assert_non_null(done);
        hf_lock_free(locks[i]);
        hf_close(clients[i]);
    }
}

static void test_contended_with_waitv_and_without(void **state)
{
    struct place *p = *state;
    char url[200];

    contend(p->url, true);
    contend(p->url, false);
    snprintf(url, sizeof(url), "%s?waitv=no", p->url);
    contend(url, true);
    contend(url, false);
}

static void async_wait(const char *url)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    pid_t pid = child_with_lock(url, true, 0, wait_for_ever);
    hf_client *client = open_client(url), *other = open_client(url);
    struct async a = {0, -1};
    hf_lock *lock, *held;
    hf_error err = HF_ERROR_INIT;

    opt.flags = HF_OWNER_HANDLE;
    opt.fairness = HF_FAIR;
    assert_int_equal(hf_lock_new(client, "x", 1, &opt, &lock, &err), 0);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, on_done, &a, &err), 0);
    nap_ms(30);
    assert_int_equal(a.calls, 0);
    kill(pid, SIGKILL);
    assert_in_range(dispatch_until(client, &a, 1), 0, DEATH_MS);
    waitpid(pid, NULL, 0);
    assert_int_equal(a.result, 0);
    assert_int_equal(hf_lock_release(lock, &err), 0);

    held = make_lock(other, "x", true);
    assert_int_equal(hf_lock_acquire(held, NULL, NULL), 0);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, on_done, &a, &err), 0);
    nap_ms(30);
    assert_int_equal(hf_lock_release(held, NULL), 0);
    assert_in_range(dispatch_until(client, &a, 2), 0, DEATH_MS);
    assert_int_equal(a.result, 0);
    assert_int_equal(hf_lock_release(lock, &err), 0);
    hf_lock_free(held);
    hf_lock_free(lock);
    hf_close(other);
    hf_close(client);
}

static void test_async_waits_with_waitv_and_without(void **state)
{
    struct place *p = *state;
    char url[200];

    async_wait(p->url);
    snprintf(url, sizeof(url), "%s?waitv=no", p->url);
    async_wait(url);
}

/* More holders than the keeper can watch in one sleep. */
static void test_many_async_waits(void **state)
{
    enum { MANY = 150 };
    struct place *p = *state;
    hf_client *holders[MANY], *client = open_client(p->url);
    hf_lock *held[MANY], *wanted[MANY];
    struct async a = {0, -1};
    char name[16];

    for (int i = 0; i < MANY; i++) {
        hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

        snprintf(name, sizeof(name), "n%d", i);
        holders[i] = open_client(p->url);
        held[i] = make_lock(holders[i], name, true);
        assert_int_equal(hf_lock_acquire(held[i], NULL, NULL), 0);
        opt.flags = HF_OWNER_HANDLE;
        assert_int_equal(
            hf_lock_new(client, name, HF_CSTRING, &opt, &wanted[i], NULL), 0);
        assert_int_equal(
            hf_lock_acquire_async(wanted[i], NULL, on_done, &a, NULL), 0);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf_lock_release(held[i], NULL), 0);
    assert_in_range(dispatch_until(client, &a, MANY), 0, 1000);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(hf_lock_release(wanted[i], NULL), 0);
        hf_lock_free(wanted[i]);
        hf_lock_free(held[i]);
        hf_close(holders[i]);
    }
    hf_close(client);
}

static void crowd_member(const char *url, int ready)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_lock(client, "x", true);
    int rc;

    if (write(ready, "", 1) != 1)
        _exit(1);
    rc = hf_lock_timed(lock, 60000, NULL);
    if (!rc)
        rc = hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
    _exit(rc ? 1 : 0);
}

static void test_1000_waiting_processes(void **state)
{
    enum { CROWD = 1000 };
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    int fds[2], status, bad = 0;
    hf_info *info = NULL;
    struct rusage before, after;
    char byte;

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    for (int i = 0; i < CROWD; i++)
        if (!fork())
            crowd_member(p->url, fds[1]);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(read(fds[0], &byte, 1), 1);
    for (int tries = 0; tries < 500; tries++) {
        nap_ms(10);
        hf_info_free(client, info);
        assert_int_equal(hf_inspect(client, "x", 1, &info, NULL), 0);
        if (info->waiters_len == CROWD)
            break;
    }
    assert_int_equal(info->waiters_len, CROWD);
    hf_info_free(client, info);
    getrusage(RUSAGE_CHILDREN, &before);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    while (wait(&status) > 0)
        bad += status != 0;
    getrusage(RUSAGE_CHILDREN, &after);
    assert_int_equal(bad, 0);
    close(fds[0]);
    close(fds[1]);
    hf_lock_free(lock);
    hf_close(client);
}

/* ---- kinds, inspection, breaking ---------------------------------------- */

static void test_fair_and_unfair_do_not_mix(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true), *wrong;
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;

    opt.fairness = HF_UNFAIR;
    assert_int_equal(hf_lock_new(other, "x", 1, &opt, &wrong, &err),
                     HF_EMISMATCH);
    assert_non_null(strstr(err.text, "a fair mutex"));
    hf_lock_free(lock);
    assert_int_equal(hf_lock_new(other, "x", 1, &opt, &wrong, &err), 0);
    hf_lock_free(wrong);
    hf_close(client);
    hf_close(other);
}

static void test_inspect_list_break(void **state)
{
    struct place *p = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *client, *other = open_client(p->url);
    hf_lock *lock, *second = make_lock(other, "dir/x", true);
    hf_names *names;
    hf_info *info;
    uint64_t token = 0;

    opt.label = "the tester";
    assert_int_equal(hf_open(p->url, &opt, &client, NULL), 0);
    lock = make_lock(client, "dir/x", true);
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    hf_lock_token(lock, &token);
    assert_int_equal(hf_inspect(other, "dir/x", 5, &info, NULL), 0);
    assert_int_equal(info->kind, HF_MUTEX);
    assert_int_equal(info->fairness, HF_FAIR);
    assert_int_equal(info->token, token);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 0);
    assert_string_equal(info->holders[0].label, "the tester");
    assert_int_equal(info->holders[0].pid, getpid());
    assert_int_equal(info->holders[0].token, token);
    assert_int_equal(info->holders[0].left_ms, -1);
    assert_true(llabs(info->holders[0].since_unix_ms - time(NULL) * 1000LL) <
                5000);
    hf_info_free(other, info);
    assert_int_equal(hf_list(other, "dir/", &names, NULL), 0);
    assert_int_equal(names->len, 1);
    hf_names_free(other, names);
    assert_int_equal(hf_list(other, "rid", &names, NULL), 0);
    assert_int_equal(names->len, 0);
    hf_names_free(other, names);
    assert_int_equal(hf_break(other, "dir/x", 5, NULL), 0);
    assert_int_equal(hf_break(other, "dir/x", 5, NULL), HF_ENOTOWNER);
    assert_int_equal(hf_lock_try(second, NULL), 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_ELOST);
    assert_int_equal(hf_lock_try(lock, NULL), HF_EBUSY);
    assert_int_equal(hf_lock_release(second, NULL), 0);
    assert_int_equal(hf_lock_try(lock, NULL), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_lock_free(lock);
    hf_lock_free(second);
    hf_close(client);
    hf_close(other);
}

/* Whatever is in the tables: an error or a grant, not a crash or a hang. */
static void test_garbage_in_the_tables_does_no_harm(void **state)
{
    struct place *p = *state;
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    hf_lock *theirs = make_lock(other, "x", true);
    struct shm_file *f = map(p);
    unsigned seed = 1;
    hf_names *names;
    hf_info *info;

    for (int round = 0; round < 200; round++) {
        uint64_t *entry = (uint64_t *)(void *)&f->entry[0];
        size_t name = offsetof(struct shm_entry, name) / 8;

        for (size_t i = 0; i < sizeof(f->entry[0]) / 8; i++)
            if ((i < name || i >= name + SHM_NAME_MAX / 8) &&
                i != offsetof(struct shm_entry, label_count) / 8 &&
                i != offsetof(struct shm_entry, label_count) / 8 + 1 &&
                rand_r(&seed) % 4 == 0)
                entry[i] = (uint64_t)rand_r(&seed) << 33 ^
                           (uint64_t)rand_r(&seed) << 10 ^
                           (uint64_t)rand_r(&seed);
        for (unsigned i = 0; i < SHM_CELLS; i++) {
            atomic_store(&f->cell[i].owner, (uint32_t)rand_r(&seed) % 0x400000);
            atomic_store(&f->cell[i].name, (uint16_t)(rand_r(&seed) % 3));
        }
        atomic_store(&f->header.cells_high, (uint32_t)rand_r(&seed));
        atomic_store(&f->header.names_high, (uint32_t)rand_r(&seed));
        if (!hf_lock_timed(lock, 2, NULL))
            hf_lock_release(lock, NULL);
        if (!hf_lock_timed(theirs, 0, NULL))
            hf_lock_release(theirs, NULL);
        if (!hf_inspect(client, "x", 1, &info, NULL))
            hf_info_free(client, info);
        if (!hf_list(client, "", &names, NULL))
            hf_names_free(client, names);
        hf_break(client, "x", 1, NULL);
    }
    hf_lock_free(lock);
    hf_lock_free(theirs);
    hf_close(client);
    hf_close(other);
    munmap(f, sizeof(*f));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file_is_private_by_default),
        TEST(test_file_is_a_groups_if_asked),
        TEST(test_bad_options_are_refused),
        TEST(test_bad_directories_are_refused),
        TEST(test_a_stranger_s_directory_is_refused),
        TEST(test_bad_files_are_refused),
        TEST(test_bad_headers_are_refused),
        TEST(test_file_of_another_version_starts_anew_if_unused),
        TEST(test_file_of_an_earlier_boot_starts_anew),
        TEST(test_another_pid_namespace_is_refused_while_in_use),
        TEST(test_many_open_a_new_file_at_once),
        TEST(test_deleted_file_is_noticed),
        TEST(test_4096_names_and_no_more),
        TEST(test_names_of_the_dead_are_taken_back),
        TEST(test_4095_clients_and_no_more),
        TEST(test_4096_waits_and_no_more),
        TEST(test_tokens_rise_when_the_name_is_made_again),
        TEST(test_tokens_rise_when_the_count_wraps),
        TEST(test_killed_holder_is_noticed),
        TEST(test_one_death_is_told_to_all),
        TEST(test_death_of_a_waiter_that_holds_another),
        TEST(test_death_while_a_waiter_is_stopped),
        TEST(test_death_after_the_one_before_gave_up),
        TEST(test_a_mark_alone_is_not_a_death),
        TEST(test_exec_lets_go),
        TEST(test_stopped_holder_keeps_it_unless_its_lease_ends),
        TEST(test_a_renewal_never_shortens_the_lease),
        TEST(test_stopped_waiter_with_lease_holds_nobody_up),
        TEST(test_stopped_waiter_with_lease_before_another),
        TEST(test_contended_with_waitv_and_without),
        TEST(test_async_waits_with_waitv_and_without),
        TEST(test_many_async_waits),
        TEST(test_1000_waiting_processes),
        TEST(test_fair_and_unfair_do_not_mix),
        TEST(test_inspect_list_break),
        TEST(test_garbage_in_the_tables_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
