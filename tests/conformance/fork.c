/* After fork() every verb that the child calls on the parent's handles returns
 * HF_EFORK and changes nothing. A client that the child opens is
 * independent. */
#include "conf.h"

#include <sys/wait.h>

#define CHECK(code, call)                                                      \
    do {                                                                       \
        line = __LINE__;                                                       \
        if ((call) != (code))                                                  \
            return line;                                                       \
    } while (0)

static void done(void *arg, hf_lock *lock, int result)
{
}

static void latch_done(void *arg, hf_latch *latch, int result)
{
}

struct forked {
    hf_client *c;
    hf_lock *held, *handle;
    hf_latch *latch; /* NULL if latches are not supported */
    const char *name;
};

static int try_synchronized(hf_lock *lock)
{
    HF_SYNCHRONIZED(lock)
    {
        return 0;
    }
    return hf_synchronized_result();
}

/* Runs in the child. Like the functions below, returns 0, or the line of the
 * first failure. */
static int try_verbs(hf_lock *held, hf_lock *handle)
{
    hf_error err = HF_ERROR_INIT;
    hf_part both[2] = {{.lock = held}, {.lock = handle}};
    int line = 0;

    CHECK(HF_EFORK, hf_lock_acquire(held, NULL, &err));
    CHECK(HF_EFORK, err.code);
    CHECK(true, err.text[0] != '\0');
    CHECK(HF_EFORK, hf_lock_try(handle, NULL));
    CHECK(HF_EFORK, hf_lock_timed(handle, 10, NULL));
    CHECK(HF_EFORK, hf_lock_put(held, "k", 1, "v", 1, &err));
    CHECK(HF_EFORK, hf_lock_release(held, &err));
    CHECK(HF_EFORK, hf_lock_release_nowait(held, &err));
    CHECK(HF_EFORK, hf_lock_renew(held, 0, &err));
    CHECK(HF_EFORK, hf_lock_upgrade(held, &err));
    CHECK(HF_EFORK, hf_lock_downgrade(held, &err));
    CHECK(HF_EFORK, hf_lock_cancel(handle));
    CHECK(HF_EFORK, hf_lock_acquire_async(handle, NULL, done, NULL, &err));
    CHECK(HF_EFORK, hf_lock_release_async(handle, done, NULL, &err));
    CHECK(HF_EFORK, hf_lock_acquire_all(both, 2, NULL, &err));
    CHECK(HF_EFORK, hf_lock_release_all(both, 2, &err));
    CHECK(HF_EFORK, try_synchronized(held));
    return 0;
}

static int try_looks(hf_lock *held)
{
    int line = 0;

    CHECK(HF_EFORK, hf_lock_check(held));
    CHECK(HF_EFORK, hf_lock_token(held, &(uint64_t){0}));
    CHECK(HF_EFORK, hf_lock_deadline(held, &(int64_t){0}));
    CHECK(HF_EFORK, hf_lock_count(held, &(unsigned){0}));
    CHECK(HF_EFORK, hf_lock_fd(held));
    return 0;
}

static int try_client(hf_client *c, const char *name)
{
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock = NULL;
    hf_latch *latch = NULL;
    hf_info *info;
    hf_names *names;
    hf_metrics metrics = HF_METRICS_INIT;
    int line = 0;

    CHECK(HF_EFORK, hf_lock_new(c, name, HF_CSTRING, NULL, &lock, &err));
    CHECK(HF_EFORK, hf_latch_new(c, name, HF_CSTRING, &latch, &err));
    CHECK(HF_EFORK, hf_client_fd(c));
    CHECK(HF_EFORK, hf_client_dispatch(c));
    CHECK(HF_EFORK, hf_client_metrics(c, &metrics, &err));
    CHECK(HF_EFORK, hf_inspect(c, name, HF_CSTRING, &info, &err));
    CHECK(HF_EFORK, hf_list(c, NULL, &names, &err));
    CHECK(HF_EFORK, hf_break(c, name, HF_CSTRING, &err));
    CHECK(HF_EFORK, hf_ask(c, name, HF_CSTRING, &err));
    return 0;
}

static int try_latch(hf_latch *latch)
{
    int line = 0;

    CHECK(HF_EFORK, hf_latch_set(latch, 1, NULL));
    CHECK(HF_EFORK, hf_latch_down(latch, NULL, NULL));
    CHECK(HF_EFORK, hf_latch_get(latch, &(uint64_t){0}, NULL));
    CHECK(HF_EFORK, hf_latch_wait(latch, 10, NULL, NULL));
    CHECK(HF_EFORK, hf_latch_wait_async(latch, 10, latch_done, NULL, NULL));
    CHECK(HF_EFORK, hf_latch_cancel(latch));
    CHECK(HF_EFORK, hf_latch_free(latch));
    return 0;
}

static int try_everything(const struct forked *f)
{
    int line = try_verbs(f->held, f->handle);

    if (!line)
        line = try_looks(f->held);
    if (!line)
        line = try_client(f->c, f->name);
    if (!line && f->latch)
        line = try_latch(f->latch);
    if (line)
        return line;
    CHECK(HF_EFORK, hf_lock_free(f->handle));
    CHECK(HF_EFORK, hf_lock_free(f->held));
    CHECK(HF_EFORK, hf_close(f->c));
    return 0;
}

/* A client that the child opens is another owner. */
static int try_own_client(const char *name)
{
    hf_lock_options opt = LOCK_OPTIONS(.fairness = conf.fairness);
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    int line = 0;

    CHECK(0, hf_open(conf.url, NULL, &c, NULL));
    CHECK(0, hf_lock_new(c, name, HF_CSTRING, &opt, &lock, NULL));
    CHECK(HF_EBUSY, hf_lock_try(lock, NULL));
    CHECK(HF_ENOTOWNER, hf_lock_release(lock, NULL));
    CHECK(0, hf_lock_free(lock));
    CHECK(0, hf_close(c));
    return 0;
}

static int exit_code(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) != pid)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A line number does not fit into an exit status, so the child writes the
 * number to a pipe. */
static pid_t begin_child(int (*what)(void *), void *arg, int *out)
{
    int pipefd[2], line;
    pid_t pid;

    assert_int_equal(pipe(pipefd), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        line = what(arg);
        if (write(pipefd[1], &line, sizeof(line)) != sizeof(line))
            _exit(1);
        _exit(0);
    }
    close(pipefd[1]);
    *out = pipefd[0];
    return pid;
}

static int end_child(pid_t pid, int out)
{
    int line = -1;

    assert_int_equal(read(out, &line, sizeof(line)), sizeof(line));
    close(out);
    assert_int_equal(exit_code(pid), 0);
    return line;
}

static int in_child(int (*what)(void *), void *arg)
{
    int out;
    pid_t pid = begin_child(what, arg, &out);

    return end_child(pid, out);
}

static int child(void *arg)
{
    struct forked *f = arg;
    int line = try_everything(f);

    return line ? line : try_own_client(f->name);
}

CONF_CASE(test_fork_child_says_so_and_parent_holds_on, CONF_EACH)
{
    struct forked f = {.name = conf_name()};
    hf_lock *other = conf_lock(conf_open(), f.name);
    uint64_t token;
    int64_t forked_at;

    f.c = conf_open_ttl(CONF_KEPT_TTL_MS);
    f.held = conf_lock(f.c, f.name);
    f.handle = conf_lock_flags(f.c, conf_name(), HF_OWNER_HANDLE);
    if (conf.kind_caps[HF_LATCH])
        f.latch = conf_latch(f.c, conf_name());
    OK(hf_lock_acquire(f.held, NULL, E));
    token = conf_token(f.held);
    forked_at = wait_now();
    assert_int_equal(in_child(child, &f), 0);
    OK(hf_lock_check(f.held)); /* the child's exit has released nothing */
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    COMES(wait_ms_since(forked_at) > CONF_KEPT_MS); /* renewed by then */
    OK(hf_lock_check(f.held));
    assert_true(conf_token(f.held) == token);
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    OK(hf_lock_release(f.held, E));
    conf_comes_free(other);
}

/* The child waits with its own client, as any other process can. */
static int wait_in_child(void *arg)
{
    hf_lock_options opt = LOCK_OPTIONS(.fairness = conf.fairness);
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    uint64_t token = 0;
    int line = 0;

    CHECK(0, hf_open(conf.url, NULL, &c, NULL));
    CHECK(0, hf_lock_new(c, ((struct forked *)arg)->name, HF_CSTRING, &opt,
                         &lock, NULL));
    CHECK(0, hf_lock_timed(lock, WAIT_LONG_MS, NULL));
    CHECK(0, hf_lock_token(lock, &token));
    CHECK(0, hf_lock_release(lock, NULL));
    CHECK(0, hf_lock_free(lock));
    CHECK(0, hf_close(c));
    return 0;
}

CONF_CASE(test_fork_child_waits_for_its_parent, CONF_EACH)
{
    struct forked f = {.name = conf_name()};
    int out, line = -1;
    uint64_t token;
    pid_t pid;

    f.c = conf_open();
    f.held = conf_lock(f.c, f.name);
    OK(hf_lock_acquire(f.held, NULL, E));
    token = conf_token(f.held);
    pid = begin_child(wait_in_child, &f, &out);
    assert_true(wait_asleep(pid, pid));
    OK(hf_lock_check(f.held));
    OK(hf_lock_release(f.held, E));
    line = end_child(pid, out);
    assert_int_equal(line, 0);
    OK(hf_lock_timed(f.held, WAIT_LONG_MS, E));
    assert_true(conf_token(f.held) > token + 1); /* the child got one */
    OK(hf_lock_release(f.held, E));
}

/* The process forks while other threads are anywhere inside the library.
 * Mutexes that these threads had locked stay locked in the child. */
struct busy {
    struct conf_thread t;
    hf_lock *lock;
    uint32_t stop; /* atomic */
    int rc;
};

static void be_busy(void *arg)
{
    struct busy *b = arg;

    while (!b->rc && !__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
        b->rc = hf_lock_timed(b->lock, 2, NULL);
        if (!b->rc)
            b->rc = hf_lock_release_nowait(b->lock, NULL);
        if (b->rc == HF_ETIMEDOUT)
            b->rc = 0;
    }
}

static int try_everything_of(void *arg)
{
    return try_everything(arg);
}

CONF_CASE(test_fork_while_threads_are_inside, CONF_EACH)
{
    enum { N = 3 };
    struct forked f = {.name = conf_name()};
    struct busy b[N];

    f.c = conf_open();
    f.held = conf_lock(f.c, f.name);
    f.handle = conf_lock_flags(f.c, conf_name(), HF_OWNER_HANDLE);
    for (int i = 0; i < N; i++) {
        b[i] = (struct busy){.lock = conf_lock(f.c, f.name)};
        conf_thread_start(&b[i].t, be_busy, &b[i]);
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(in_child(try_everything_of, &f), 0);
    for (int i = 0; i < N; i++) {
        __atomic_store_n(&b[i].stop, 1, __ATOMIC_RELEASE);
        conf_thread_join(&b[i].t);
        OK(b[i].rc);
    }
}
