/*
 * The core with a test backend: opening a client, freeing two handles at once,
 * forking in a callback, and the end of a hold.
 */
#include "../cases.h"
#include "core/events.h"
#include "core/wakeup.h"
#include "policy/lease.h"

#include "../server_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static int acquire_as(hf_lock *lock, enum hf_mode mode)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.mode = mode);

    return hf_lock_acquire(lock, &opt, NULL);
}

/* The linker replaces hf__names_put() with __wrap_hf__names_put(). */
void __real_hf__names_put(struct hf__line *);
void __wrap_hf__names_put(struct hf__line *);

static __thread bool stops_in_put;
static uint32_t put_stopped, put_may_go_on; /* atomic */

void __wrap_hf__names_put(struct hf__line *n)
{
    if (stops_in_put) {
        __atomic_store_n(&put_stopped, 1, __ATOMIC_SEQ_CST);
        WAIT_FOR(__atomic_load_n(&put_may_go_on, __ATOMIC_SEQ_CST));
    }
    __real_hf__names_put(n);
}

static void *free_and_stop(void *lock)
{
    stops_in_put = true;
    return (void *)(intptr_t)hf_lock_free(lock);
}

static void free_at_once(enum hf_kind kind, enum hf_mode mode)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_lock *a = make_lock(c, "n", kind, 0, 0);
    hf_lock *b = make_lock(c, "n", kind, 0, 0);
    pthread_t t;
    void *rc;

    put_stopped = put_may_go_on = 0;
    assert_int_equal(acquire_as(a, mode), 0);
    assert_int_equal(pthread_create(&t, NULL, free_and_stop, a), 0);
    assert_true(WAIT_FOR(__atomic_load_n(&put_stopped, __ATOMIC_SEQ_CST)));
    assert_int_equal(hf_lock_free(b), HF_EBUSY); /* the owner's last handle */
    __atomic_store_n(&put_may_go_on, 1, __ATOMIC_SEQ_CST);
    pthread_join(t, &rc);
    assert_null(rc);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    assert_int_equal(server.released, 1);
    assert_int_equal(hf_lock_free(b), 0);
    assert_int_equal(c->names_len, 0);
    assert_int_equal(hf_close(c), 0);
}

CASE(test_core_of_two_handles_freed_at_once_one_is_the_last)
{
    free_at_once(HF_MUTEX, HF_WRITE);
    free_at_once(HF_RWLOCK, HF_READ);
}

struct forker {
    int called;
    pid_t child; /* 0: in the child */
};

static void fork_at_first(void *arg, hf_lock *lock, int result)
{
    struct forker *f = arg;

    if (!f->called++)
        f->child = fork();
}

static void fork_at_event(void *arg, const hf_event *event)
{
    fork_at_first(arg, NULL, 0);
}

/* Asserts the results of dispatch or close in both processes. In the child the
 * call must return HF_EFORK; the child then exits. */
static void both_have_returned(const struct forker *f, int rc, int called)
{
    int status = -1;

    if (!f->child)
        _exit(rc == HF_EFORK && f->called == 1 ? 0 : 1);
    assert_int_equal(rc, called);
    assert_true(WAIT_FOR(waitpid(f->child, &status, WNOHANG) == f->child));
    assert_int_equal(status, 0);
}

static bool has_callbacks(hf_client *c, size_t n)
{
    bool has;

    hf__mutex_lock(&c->mu);
    has = c->callbacks_len == n;
    hf__mutex_unlock(&c->mu);
    return has;
}

CASE(test_core_child_of_a_callback_runs_no_other)
{
    hf_client *c = open_with(NULL);
    hf_lock *m = make_lock(c, "m", HF_MUTEX, HF_OWNER_HANDLE, 0);
    hf_lock *n = make_lock(c, "n", HF_MUTEX, HF_OWNER_HANDLE, 0);
    struct forker f = {0, 0};

    let_answer(c, 2, HF__GRANTED);
    assert_int_equal(hf_lock_acquire_async(m, NULL, fork_at_first, &f, NULL),
                     0);
    assert_int_equal(hf_lock_acquire_async(n, NULL, fork_at_first, &f, NULL),
                     0);
    assert_true(WAIT_FOR(has_callbacks(c, 2)));
    both_have_returned(&f, hf_client_dispatch(c), 2);
    assert_int_equal(f.called, 2);
    assert_int_equal(hf_lock_release(m, NULL), 0);
    assert_int_equal(hf_lock_release(n, NULL), 0);
    assert_int_equal(hf_lock_free(m), 0);
    assert_int_equal(hf_lock_free(n), 0);
    assert_int_equal(hf_close(c), 0);
}

CASE(test_core_child_of_an_event_hears_no_other)
{
    hf_client *c = open_with(NULL);
    struct forker f = {0, 0};

    c->on_event = fork_at_event;
    c->event_arg = &f;
    hf__mutex_lock(&c->mu);
    hf__event_queue_locked(c, HF_EVENT_DOWN, NULL, 0, hf__no_loss);
    hf__event_queue_locked(c, HF_EVENT_UP, NULL, 0, hf__no_loss);
    hf__mutex_unlock(&c->mu);
    both_have_returned(&f, hf_client_dispatch(c), 2);
    assert_int_equal(f.called, 2);
    assert_int_equal(hf_close(c), 0);
}

CASE(test_core_child_of_a_callback_of_close_closes_nothing)
{
    hf_client *c = open_with(NULL);
    hf_lock *m = make_lock(c, "m", HF_MUTEX, HF_OWNER_HANDLE, 0);
    hf_lock *n = make_lock(c, "n", HF_MUTEX, HF_OWNER_HANDLE, 0);
    struct forker f = {0, 0};

    assert_int_equal(hf_lock_acquire_async(m, NULL, fork_at_first, &f, NULL),
                     0);
    assert_int_equal(hf_lock_acquire_async(n, NULL, fork_at_first, &f, NULL),
                     0);
    both_have_returned(&f, hf_close(c), 0);
    assert_int_equal(f.called, 2);
    assert_int_equal(hf_lock_free(m), 0);
    assert_int_equal(hf_lock_free(n), 0);
}

struct heard {
    int events, last; /* number of events, and the type of the last one */
    char name[16];
};

static void hear(void *arg, const hf_event *event)
{
    struct heard *h = arg;

    h->events++;
    h->last = event->type;
    snprintf(h->name, sizeof(h->name), "%s", event->name);
}

static hf_client *open_hearing(struct heard *h)
{
    hf_client *c = open_at_once(HF__GRANTED);

    *h = (struct heard){0};
    c->on_event = hear;
    c->event_arg = h;
    return c;
}

/* Whenever events were dropped, a single event reports that. */
CASE(test_core_events_that_are_dropped_are_told)
{
    struct heard h;
    hf_client *c = open_hearing(&h);

    for (int round = 1; round <= 2; round++) {
        hf__mutex_lock(&c->mu);
        for (int i = 0; i < 1100; i++)
            hf__event_queue_locked(c, HF_EVENT_DOWN, NULL, 0, hf__no_loss);
        hf__mutex_unlock(&c->mu);
        assert_int_equal(hf_client_dispatch(c), 1025);
        assert_int_equal(h.events, round * 1025);
        assert_int_equal(h.last, HF_EVENT_OVERFLOW);
        assert_string_equal(h.name, "");
    }
    assert_int_equal(hf_client_dispatch(c), 0);
    assert_int_equal(hf_close(c), 0);
}

/* The first loss is stored in the line, the second one outside of it. Both are
 * reported although the line was freed with its handle. */
CASE(test_core_loss_is_told_when_its_handle_is_gone)
{
    struct heard h;
    hf_client *c = open_hearing(&h);
    hf_lock *lock = make_lock(c, "n", HF_MUTEX, 0, 0);

    for (int i = 0; i < 2; i++) {
        hf__mutex_lock(&c->mu);
        hf__event_queue_locked(c, HF_EVENT_LOST, lock->line, 7, hf__no_loss);
        hf__mutex_unlock(&c->mu);
    }
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(c->names_len, 0);
    assert_int_equal(hf_client_dispatch(c), 2);
    assert_int_equal(h.last, HF_EVENT_LOST);
    assert_string_equal(h.name, "n");
    assert_int_equal(hf_close(c), 0);
}

/* The thread that fires a cancel sets one of these. With stops_in_post it stops
 * before it writes to the client's descriptor, with stops_in_wake before it
 * wakes the waiting thread. */
static __thread bool stops_in_post, stops_in_wake;
static uint32_t fire_stopped, fire_may_go_on; /* atomic */

static void stop_firing(void)
{
    __atomic_store_n(&fire_stopped, 1, __ATOMIC_SEQ_CST);
    WAIT_FOR(__atomic_load_n(&fire_may_go_on, __ATOMIC_SEQ_CST));
}

/* The linker replaces hf__fd_post() with __wrap_hf__fd_post(). */
void __real_hf__fd_post(int fd);
void __wrap_hf__fd_post(int fd);

void __wrap_hf__fd_post(int fd)
{
    if (stops_in_post)
        stop_firing();
    if ((stops_in_post || stops_in_wake) && fcntl(fd, F_GETFD) < 0)
        abort(); /* a closed descriptor, which may be reused by now */
    __real_hf__fd_post(fd);
}

/* The linker replaces hf__futex_wake() with __wrap_hf__futex_wake(). */
void __real_hf__futex_wake(uint32_t *word, int how_many);
void __wrap_hf__futex_wake(uint32_t *word, int how_many);

void __wrap_hf__futex_wake(uint32_t *word, int how_many)
{
    if (stops_in_wake)
        stop_firing();
    __real_hf__futex_wake(word, how_many);
}

static void *fire_and_stop_in_post(void *cancel)
{
    stops_in_post = true;
    hf_cancel_fire(cancel);
    return NULL;
}

static void *fire_and_stop_in_wake(void *cancel)
{
    stops_in_wake = true;
    hf_cancel_fire(cancel);
    return NULL;
}

/* Each block has its own pages: a thread that uses a block after it was freed
 * crashes. */
#define OWN_PAGES 65536

static void *pages_take(void *ctx, size_t size)
{
    void *p = MAP_FAILED;

    if (size <= OWN_PAGES)
        p = mmap(NULL, OWN_PAGES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void pages_give(void *ctx, void *p)
{
    if (p && mprotect(p, OWN_PAGES, PROT_NONE))
        abort();
}

static const hf_hooks pages = {.alloc = pages_take, .free = pages_give};

/* Opens a client that uses this memory, and whose server queues each
 * attempt. */
static hf_client *open_in_pages(void)
{
    hf_client *c = open_with(&pages);

    hf__mutex_lock(&c->mu);
    server.at_once = true;
    server.answer = HF__QUEUED;
    hf__mutex_unlock(&c->mu);
    return c;
}

static hf_cancel *cancel_in_a_page(void)
{
    hf_cancel *cancel = pages_take(NULL, sizeof(*cancel));

    assert_non_null(cancel);
    hf_cancel_init(cancel);
    return cancel;
}

struct closer {
    hf_client *client;
    uint32_t closed; /* atomic */
};

static void *close_client(void *arg)
{
    struct closer *c = arg;
    int rc = hf_close(c->client);

    __atomic_store_n(&c->closed, 1, __ATOMIC_SEQ_CST);
    return (void *)(intptr_t)rc;
}

static bool is_closed(struct closer *c)
{
    return __atomic_load_n(&c->closed, __ATOMIC_SEQ_CST);
}

static bool is_attached(hf_cancel *cancel)
{
    return __atomic_load_n(&cancel->word, __ATOMIC_SEQ_CST) & HF__ATTACHED;
}

struct timed {
    hf_lock *lock;
    hf_acquire_options opt;
};

static void *wait_timed(void *arg)
{
    struct timed *t = arg;

    return (void *)(intptr_t)hf_lock_acquire(t->lock, &t->opt, NULL);
}

/* A wait ends before the thread that fires its cancel continues. The cancel may
 * then be freed, but hf_close() must wait until the firing has ended. */
static void fire_late(void *(*fire_and_stop)(void *cancel))
{
    struct closer closer = {open_in_pages(), 0};
    hf_client *c = closer.client;
    struct timed t = {make_lock(c, "n", HF_MUTEX, 0, 0),
                      HF_ACQUIRE_OPTIONS_INIT};
    hf_cancel *cancel = cancel_in_a_page();
    pthread_t firing, waiting, closing;
    void *rc;

    fire_stopped = fire_may_go_on = 0;
    t.opt.cancel = cancel;
    t.opt.wait_ms = 1000; /* nothing wakes it sooner */
    assert_int_equal(pthread_create(&waiting, NULL, wait_timed, &t), 0);
    assert_true(WAIT_FOR(is_attached(cancel)));
    assert_int_equal(pthread_create(&firing, NULL, fire_and_stop, cancel), 0);
    assert_true(WAIT_FOR(__atomic_load_n(&fire_stopped, __ATOMIC_SEQ_CST)));
    pthread_join(waiting, &rc);
    assert_int_equal((intptr_t)rc, HF_ECANCELED);
    pages_give(NULL, cancel);
    assert_int_equal(hf_lock_free(t.lock), 0);
    assert_int_equal(pthread_create(&closing, NULL, close_client, &closer), 0);
    assert_true(NEVER_MS(is_closed(&closer), 300));
    __atomic_store_n(&fire_may_go_on, 1, __ATOMIC_SEQ_CST);
    pthread_join(firing, NULL);
    pthread_join(closing, &rc);
    assert_null(rc);
}

ROW(test_core_close_waits_for_who_fires, fire_late(fire_and_stop_in_post));
ROW(test_core_firing_touches_nothing_that_is_free,
    fire_late(fire_and_stop_in_wake));

/* A cancel is fired after its wait has ended and the client of that wait is
 * closed. The cancel still points to the client, which must not be used. */
CASE(test_core_firing_after_the_wait_touches_no_client)
{
    hf_client *c = open_in_pages();
    hf_lock *lock = make_lock(c, "n", HF_MUTEX, 0, 0);
    hf_cancel cancel = HF_CANCEL_INIT;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.cancel = &cancel, .wait_ms = 1);

    assert_int_equal(hf_lock_acquire(lock, &opt, NULL), HF_ETIMEDOUT);
    assert_ptr_equal(cancel.client, c);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
    hf_cancel_fire(&cancel);
}

/* A thread that is about to fire checks that the word of the cancel is the one
 * that it read before. A wait must leave another word than it found, since the
 * next wait may belong to another client. */
CASE(test_core_no_wait_leaves_the_word_as_it_was)
{
    hf_client *c = open_at_once(HF__QUEUED);
    hf_lock *lock = make_lock(c, "n", HF_MUTEX, 0, 0);
    hf_cancel cancel = HF_CANCEL_INIT;
    uint32_t before = cancel.word;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.cancel = &cancel, .wait_ms = 1);

    assert_int_equal(hf_lock_acquire(lock, &opt, NULL), HF_ETIMEDOUT);
    assert_false(is_attached(&cancel));
    assert_int_not_equal(cancel.word, before);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

/* A child fires a cancel of its parent. The descriptor of the client belongs to
 * the parent, and must not be written to. */
CASE(test_core_child_fires_nothing_of_its_parent)
{
    hf_client *c = open_at_once(HF__QUEUED);
    hf_cancel cancel = {HF__ATTACHED, c};
    struct pollfd wakes = {.fd = c->wake_fd, .events = POLLIN};
    pid_t pid;
    int status;

    hf__fd_drain(c->wake_fd);
    pid = fork();
    if (!pid) {
        hf_cancel_fire(&cancel);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(poll(&wakes, 1, 0), 0);
    assert_int_equal(hf_close(c), 0);
}

#define LINES 256

static size_t longest_chain(const hf_client *c)
{
    size_t longest = 0;

    for (size_t i = 0; i < c->buckets_len; i++) {
        size_t len = 0;

        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket)
            len++;
        longest = len > longest ? len : longest;
    }
    return longest;
}

CASE(test_core_lines_of_a_name_are_spread)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_lock *lock = make_lock(c, "n", HF_SEMAPHORE, 0, LINES);

    for (int i = 0; i < LINES; i++)
        assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    hf__mutex_lock(&c->mu);
    assert_int_equal(c->names_len, LINES);
    assert_true(longest_chain(c) < LINES / 8);
    hf__mutex_unlock(&c->mu);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(c->names_len, 0);
    assert_int_equal(hf_close(c), 0);
}

int __real_timerfd_settime(int, int, const struct itimerspec *,
                           struct itimerspec *);
int __wrap_timerfd_settime(int, int, const struct itimerspec *,
                           struct itimerspec *);

static unsigned set; /* atomic: how often a timer was set */

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to,
                           struct itimerspec *was)
{
    __atomic_add_fetch(&set, 1, __ATOMIC_SEQ_CST);
    return __real_timerfd_settime(fd, flags, to, was);
}

static unsigned times_set(void)
{
    return __atomic_exchange_n(&set, 0, __ATOMIC_SEQ_CST);
}

static void renew(hf_client *c, hf_lock *lock)
{
    let_answer(c, 1, HF__DONE);
    assert_int_equal(hf_lock_renew(lock, 0, NULL), 0);
    let_answer(c, 0, HF__GRANTED);
}

static bool is_armed(hf_lock *lock)
{
    struct itimerspec spec;
    int fd = hf_lock_fd(lock);

    assert_int_equal(timerfd_gettime(fd, &spec), 0);
    return spec.it_value.tv_sec || spec.it_value.tv_nsec;
}

/* The end of one hold sets only the timer descriptor of its own handle, however
 * many handles there are. */
CASE(test_core_end_of_one_hold_sets_one_descriptor)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_lock *lock[8];

    times_set();
    for (int i = 0; i < 8; i++) {
        lock[i] = make_lock(c, "n", HF_SEMAPHORE, 0, 8);
        assert_true(hf_lock_fd(lock[i]) >= 0);
        assert_int_equal(times_set(), 1);
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(hf_lock_acquire(lock[i], NULL, NULL), 0);
        assert_int_equal(times_set(), 1);
        assert_true(is_armed(lock[i]));
    }
    renew(c, lock[3]);
    assert_int_equal(times_set(), 2); /* a renewal may shorten the hold */
    for (int i = 0; i < 8; i++) {
        assert_true(is_armed(lock[i]));
        assert_int_equal(hf_lock_release(lock[i], NULL), 0);
        assert_int_equal(times_set(), 1);
        assert_false(is_armed(lock[i]));
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(hf_lock_free(lock[i]), 0);
    assert_int_equal(hf_close(c), 0);
}

static uint32_t permits_told; /* protected by client->mu */

static void note_permits(const struct hf__batch *batch)
{
    permits_told = batch->item[0].permits;
}

static void renews_permits(hf_client *c, hf_lock *lock, uint32_t permits)
{
    assert_int_equal(hf_lock_renew(lock, 0, NULL), 0);
    hf__mutex_lock(&c->mu);
    assert_int_equal(permits_told, permits);
    hf__mutex_unlock(&c->mu);
}

/* The downgraded hold belongs to a line that has sent no request. That line
 * reuses the memory of the semaphore's requests, but must renew 1 permit, not
 * as many as the semaphore's hold had. */
CASE(test_core_downgraded_hold_is_renewed_as_one_permit)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_lock *rw = make_lock(c, "rw", HF_RWLOCK, 0, 0);
    hf_lock *sem = make_lock(c, "sem", HF_SEMAPHORE, 0, 3);
    hf_acquire_options opt = ACQUIRE_OPTIONS(.permits = 3);

    server.in_renew = note_permits;
    assert_int_equal(hf_lock_acquire(rw, NULL, NULL), 0);
    assert_int_equal(hf_lock_acquire(sem, &opt, NULL), 0);
    let_answer(c, 1000, HF__DONE); /* the helper thread may renew first */
    renews_permits(c, sem, 3);
    assert_int_equal(hf_lock_release(sem, NULL), 0);
    assert_int_equal(hf_lock_downgrade(rw, NULL), 0);
    renews_permits(c, rw, 1);
    assert_int_equal(hf_lock_release(rw, NULL), 0);
    assert_int_equal(hf_lock_free(rw), 0);
    assert_int_equal(hf_lock_free(sem), 0);
    assert_int_equal(hf_close(c), 0);
}

static uint32_t opened; /* atomic */

static void open_slowly(const struct hf__config *config)
{
    usleep(700000);
    __atomic_store_n(&opened, 1, __ATOMIC_SEQ_CST);
}

CASE(test_core_lookup_and_connecting_have_one_time)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    struct wait_mark began = wait_mark();
    hf_client *c;

    memset(&server, 0, sizeof(server));
    server.in_open = open_slowly;
    server.never_ready = true;
    opt.connect_timeout_ms = 1000;
    assert_int_equal(hf_open("test://", &opt, &c, NULL), HF_EBACKEND);
    assert_true(wait_took(began, 1000, 1400));
    assert_true(WAIT_FOR(__atomic_load_n(&opened, __ATOMIC_SEQ_CST)));
}

static char secret[16384];

static void note_secret(const struct hf__config *config)
{
    snprintf(secret, sizeof(secret), "%s", config->password);
}

static int open_by_file_within(const char *path, int64_t ms, hf_error *err)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    char url[256];
    hf_client *c;
    int rc;

    memset(&server, 0, sizeof(server));
    server.in_open = note_secret;
    snprintf(url, sizeof(url), "test://?password_file=%s", path);
    opt.open_timeout_ms = ms;
    rc = hf_open(url, &opt, &c, err);
    if (!rc)
        assert_int_equal(hf_close(c), 0);
    return rc;
}

static int open_by_file(const char *path)
{
    return open_by_file_within(path, 0, NULL);
}

static void write_secret(const char *path, size_t len)
{
    static char text[16384];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    memset(text, 'x', len);
    text[len] = '\n';
    assert_int_equal(write(fd, text, len + 1), len + 1);
    close(fd);
}

/* Writes two parts, so that the reader gets the first part before the second is
 * written. */
static void *write_in_parts(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), left;

    if (write(fd, "ab", 2) != 2)
        abort();
    WAIT_FOR(!ioctl(fd, FIONREAD, &left) && !left);
    if (write(fd, "cd\nef\n", 6) != 6)
        abort();
    close(fd);
    return NULL;
}

CASE(test_core_password_file_is_read_whole)
{
    char dir[] = "/tmp/holdfast-core-XXXXXX", path[64];
    pthread_t t;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/secret", dir);
    write_secret(path, 5000);
    assert_int_equal(open_by_file(path), 0);
    assert_int_equal(strlen(secret), 5000);
    write_secret(path, 10000);
    assert_int_equal(open_by_file(path), HF_EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&t, NULL, write_in_parts, path), 0);
    assert_int_equal(open_by_file(path), 0);
    pthread_join(t, NULL);
    assert_string_equal(secret, "abcd");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* hf_open() soon fails if no program writes to the pipe, or if a program writes
 * a line without its end. */
CASE(test_core_password_file_is_not_waited_for_long)
{
    char dir[] = "/tmp/holdfast-core-XXXXXX", path[64];
    hf_error err = HF_ERROR_INIT;
    struct wait_mark begun = wait_mark();
    int fd;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/secret", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_by_file_within(path, 100, &err), HF_EINVAL);
    assert_non_null(strstr(err.text, "no line came within 100 ms"));
    assert_true(wait_took(begun, 100, 1100));
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(write(fd, "ab", 2), 2);
    assert_int_equal(open_by_file_within(path, 100, &err), HF_EINVAL);
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* A handle is freed while its release is pending. The client no longer uses the
 * name then, so the next handle of the name may have another kind. */
CASE(test_core_name_without_handles_may_be_another_kind)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_lock *mutex = make_lock(c, "n", HF_MUTEX, 0, 0), *lock;

    assert_int_equal(hf_lock_acquire(mutex, NULL, NULL), 0);
    hf__mutex_lock(&c->mu);
    server.keeps_releases = true;
    hf__mutex_unlock(&c->mu);
    assert_int_equal(hf_lock_release_nowait(mutex, NULL), 0);
    assert_int_equal(hf_lock_free(mutex), 0);
    lock = make_lock(c, "n", HF_RWLOCK, 0, 0);
    assert_int_equal(hf_lock_new(c, "n", HF_CSTRING, NULL, &mutex, NULL),
                     HF_EMISMATCH);
    let_answer(c, 1, HF__DONE);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

struct permits {
    pthread_t thread;
    hf_lock *lock;
    uint32_t many;
    int rc;
};

static void *take_permits(void *arg)
{
    struct permits *p = arg;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.permits = p->many);

    p->rc = hf_lock_acquire(p->lock, &opt, NULL);
    return NULL;
}

static unsigned asked(hf_client *c)
{
    unsigned n = 0;

    hf__mutex_lock(&c->mu);
    for (const struct hf__req *req = server.asked; req; req = req->next)
        n++;
    hf__mutex_unlock(&c->mu);
    return n;
}

/* A release ends the acquire that was granted last, even if another one was
 * requested later. */
CASE(test_core_release_of_the_permits_that_came_last)
{
    hf_client *c = open_at_once(HF__GRANTED);
    hf_lock *lock = make_lock(c, "s", HF_SEMAPHORE, 0, 3);
    struct permits p[] = {{.lock = lock, .many = 2}, {.lock = lock, .many = 1}};
    unsigned count = 0;

    hf__mutex_lock(&c->mu);
    server.at_once = false;
    hf__mutex_unlock(&c->mu);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(
            pthread_create(&p[i].thread, NULL, take_permits, &p[i]), 0);
        assert_true(WAIT_FOR(asked(c) == i + 1));
    }
    for (unsigned i = 2; i-- > 0;) { /* grants the last attempt first */
        let_answer(c, 1, HF__GRANTED);
        pthread_join(p[i].thread, NULL);
        assert_int_equal(p[i].rc, 0);
    }
    assert_int_equal(hf_lock_count(lock, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_count(lock, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

CASES_MAIN(NULL, NULL);
