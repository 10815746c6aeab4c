/*
 * Helpers of the shared-memory tests: a new directory for each case, clients
 * and locks in it, processes that hold a lock, threads that wait for one, and
 * times that exclude waiting for a processor.
 */
#ifndef SHM_FIXTURE_H
#define SHM_FIXTURE_H

#include "../../../lib/cpu_wait.h"
#include "../../../lib/expect.h"
#include "../../../lib/options.h"
#include "../../../lib/sanitized.h"
#include "../../../lib/shm_dir.h"
#include "../../../lib/wait.h"
#include "../../cases.h"
#include "../../options.h"
#include "backends/shm/layout.h"

#include <fcntl.h>
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The time in which a death must be noticed; instrumented code may take longer
 * than the contract allows. */
#define DEATH_MS (SANITIZED ? 2000 : 100)

static inline int place_make(void **state)
{
    static struct locks_place place;

    *state = &place;
    return locks_place_make(&place, "test_shm") ? 0 : -1;
}

static inline int place_remove(void **state)
{
    locks_place_remove(*state);
    return 0;
}

/* Returns the URL of the place with a directory and file that our group
 * shares. */
static inline const char *group_url(const struct locks_place *p)
{
    return text_of("%s?mode=0660&group=%u", p->url, (unsigned)getegid());
}

/* Returns the permission bits of a file. */
static inline unsigned mode_of(const char *path)
{
    struct stat st;

    OK(stat(path, &st));
    return st.st_mode & 07777;
}

static inline void unmap(void *f)
{
    munmap(f, sizeof(struct shm_file));
}

/* Maps the file until the end of the case. */
static inline struct shm_file *map(const struct locks_place *p)
{
    int fd = open(p->file, O_RDWR | O_CLOEXEC);
    struct shm_file *f =
        mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    close(fd);
    assert_true(f != MAP_FAILED);
    defer(unmap, f);
    return f;
}

static inline int64_t now_ms(void)
{
    return wait_now() / 1000000;
}

static inline void nap_ms(long ms)
{
    poll(NULL, 0, (int)ms);
}

/* Clients and locks end with the case. close_client() and free_lock() end them
 * earlier. */
static inline void end_client(void *client)
{
    OK(hf_close(client));
}

static inline void end_lock(void *lock)
{
    OK(hf_lock_free(lock));
}

static inline void close_client(hf_client *client)
{
    forget(client);
    end_client(client);
}

static inline void free_lock(hf_lock *lock)
{
    forget(lock);
    end_lock(lock);
}

static inline hf_client *open_client_of(const char *url,
                                        const hf_client_options *opt)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;

    if (hf_open(url, opt, &client, &err))
        fail_msg("%s: %s", url, err.text);
    defer(end_client, client);
    return client;
}

static inline hf_client *open_client(const char *url)
{
    return open_client_of(url, NULL);
}

static inline hf_lock *make_lock_of(hf_client *client, const char *name,
                                    const hf_lock_options *opt)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock;

    if (hf_lock_new(client, name, HF_CSTRING, opt, &lock, &err))
        fail_msg("%s: %s", name, err.text);
    defer(end_lock, lock);
    return lock;
}

static inline hf_lock *make_lock(hf_client *client, const char *name, bool fair)
{
    return make_lock_of(client, name,
                        KIND(HF_MUTEX, .fairness = fair ? HF_FAIR : HF_UNFAIR));
}

static inline uint64_t token_once(const char *url, const char *name)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_lock(client, name, true);
    uint64_t token = 0;

    OK(hf_lock_acquire(lock, NULL, NULL));
    OK(hf_lock_token(lock, &token));
    OK(hf_lock_release(lock, NULL));
    free_lock(lock);
    close_client(client);
    return token;
}

static inline void assert_refused(const char *url, int code, const char *text)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;

    EXPECT(code, hf_open(url, NULL, &client, &err));
    assert_null(client);
    expect_words(err.text, text);
}

/* Asserts that `call`, which stores its error in `err`, fails with this code
 * and a message that contains these words. */
#define FAILS_SAYING(code, words, call)                                        \
    do {                                                                       \
        hf_error err = HF_ERROR_INIT;                                          \
                                                                               \
        EXPECT(code, call);                                                    \
        expect_words(err.text, words);                                         \
    } while (0)

/* Creates a valid file by opening a client once. */
static inline void make_file(const struct locks_place *p)
{
    close_client(open_client(p->url));
}

static inline void wait_for_ever(void)
{
    for (;;)
        pause();
}

static inline void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int ready[2]; /* a pipe from the child to the parent */

static inline void say_ready(void)
{
    if (write(ready[1], "", 1) != 1)
        _exit(1);
}

/* Forks; returns in the child at once, and in the parent when the child has
 * called say_ready(). */
static inline pid_t fork_until_ready(void)
{
    char byte;
    pid_t pid;

    OK(pipe(ready));
    pid = fork();
    if (pid) {
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
    }
    return pid;
}

/* Forks a process that acquires the mutex x and then calls then(). */
static inline pid_t child_with_lock(const char *url, bool fair,
                                    int64_t lease_ms, void (*then)(void))
{
    pid_t pid = fork_until_ready();

    if (pid)
        return pid;
    if (hf_lock_acquire(make_lock(open_client(url), "x", fair),
                        HOW(HF_FOREVER, .lease_ms = lease_ms), NULL))
        _exit(1);
    say_ready();
    then();
    _exit(0);
}

/* Delays that the library does not cause, in ns. `own`: how long a thread or
 * process itself waited for a processor; `all`: how long at least one thread of
 * the machine did. */
struct lateness {
    int64_t own, all;
};

static inline struct lateness lateness_of_thread(void)
{
    return (struct lateness){cpu_wait_of_thread(), wait_stalled()};
}

static inline struct lateness lateness_since(struct lateness then,
                                             struct lateness now)
{
    return (struct lateness){now.own - then.own, now.all - then.all};
}

static inline int64_t late_ms(struct lateness l)
{
    return (l.own > l.all ? l.own : l.all) / 1000000;
}

/* A thread that acquires a lock once. */
struct waiter {
    pthread_t thread;
    hf_lock *lock;
    hf_acquire_options how;
    pid_t tid;            /* atomic; 0: not yet */
    int64_t granted_at;   /* atomic, ms; 0: not yet */
    struct lateness late; /* delays during the call */
    int rc;
};

static inline void *waiter_main(void *arg)
{
    struct waiter *w = arg;
    struct lateness before = lateness_of_thread();

    __atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    w->rc = hf_lock_acquire(w->lock, &w->how, NULL);
    __atomic_store_n(&w->granted_at, now_ms(), __ATOMIC_RELEASE);
    w->late = lateness_since(before, lateness_of_thread());
    if (!w->rc)
        w->rc = hf_lock_release(w->lock, NULL);
    return NULL;
}

static inline void waiter_start_how(struct waiter *w, hf_lock *lock,
                                    const hf_acquire_options *how)
{
    *w = (struct waiter){.lock = lock, .how = *how};
    OK(pthread_create(&w->thread, NULL, waiter_main, w));
}

static inline void waiter_start(struct waiter *w, hf_lock *lock)
{
    waiter_start_how(w, lock, HOW(20000));
}

static inline pid_t waiter_tid(const struct waiter *w)
{
    return __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
}

static inline bool waiter_has_it(struct waiter *w)
{
    return __atomic_load_n(&w->granted_at, __ATOMIC_ACQUIRE) != 0;
}

/* Checks that each waiter was granted the lock between `least` and `most` ms
 * after `since`. A waiter may have depended on others to wake it. Therefore
 * each waiter may be late by the sum of all waiters' own delays, or by the
 * longest delay of the machine if that is longer. */
static inline void waiters_end(struct waiter *w, int len, int64_t since,
                               int64_t least, int64_t most)
{
    struct lateness late = {0, 0};

    for (int i = 0; i < len; i++) {
        pthread_join(w[i].thread, NULL);
        late.own += w[i].late.own;
        late.all = w[i].late.all > late.all ? w[i].late.all : late.all;
    }
    most += late_ms(late);
    for (int i = 0; i < len; i++) {
        OK(w[i].rc);
        assert_in_range(w[i].granted_at - since, least, most);
        free_lock(w[i].lock);
    }
}

static inline void waiter_end(struct waiter *w, int64_t since, int64_t least,
                              int64_t most)
{
    waiters_end(w, 1, since, least, most);
}

/* Asserts that the calling thread acquires the lock soon. */
static inline void takes_it_soon(hf_lock *lock, const hf_acquire_options *opt)
{
    struct lateness before = lateness_of_thread();
    int64_t since = now_ms();

    OK(hf_lock_acquire(lock, opt, NULL));
    assert_in_range(now_ms() - since, 0,
                    DEATH_MS +
                        late_ms(lateness_since(before, lateness_of_thread())));
}

/* Returns the number of waiters of x. */
static inline size_t waiters(hf_client *client)
{
    hf_info *info;
    size_t n;

    OK(hf_inspect(client, "x", 1, &info, NULL));
    n = info->waiters_len;
    hf_info_free(info);
    return n;
}

/* Returns the number of holders of x. */
static inline size_t holders(hf_client *client)
{
    hf_info *info;
    size_t n;

    OK(hf_inspect(client, "x", 1, &info, NULL));
    n = info->holders_len;
    hf_info_free(info);
    return n;
}

struct async {
    int calls, result;
};

static inline void on_done(void *arg, hf_lock *lock, int result)
{
    struct async *a = arg;

    a->calls++;
    a->result = result;
}

/* Dispatches until the callback was called `calls` times; returns how long that
 * took, without the time that the process waited for a processor. */
static inline int64_t dispatch_until(hf_client *client, struct async *a,
                                     int calls)
{
    struct pollfd poll_fd = {hf_client_fd(client), POLLIN, 0};
    struct lateness before = {cpu_wait_of(getpid()), wait_stalled()}, after;
    int64_t start = now_ms(), took;

    while (a->calls < calls && now_ms() - start < 5000) {
        poll(&poll_fd, 1, 100);
        hf_client_dispatch(client);
    }
    after = (struct lateness){cpu_wait_of(getpid()), wait_stalled()};
    took = now_ms() - start - late_ms(lateness_since(before, after));
    return took > 0 ? took : 0;
}

#define CASE_HERE(fn)                                                          \
    CASE_WITH(fn, place_make, place_remove, struct locks_place *p)

#endif
