/* A good citizen: descriptors, threads, signals, fork. */
#include "conf.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* Uses everything that makes a descriptor or a thread. */
struct used {
    hf_client *a, *b;
    hf_lock *held, *wanted;
    struct conf_taker t;
};

static void use(struct used *u)
{
    const char *name = conf_name();

    *u = (struct used){0};
    u->a = conf_open();
    u->b = conf_open();
    u->held = conf_lock(u->a, name);
    u->wanted = conf_lock(u->b, name);
    assert_true(hf_client_fd(u->a) >= 0);
    assert_true(hf_lock_fd(u->held) >= 0);
    OK(hf_lock_acquire(u->held, NULL, E));
    conf_taker_start(&u->t, u->wanted);
    conf_thread_asleep(&u->t.t);
}

static void used(struct used *u)
{
    OK(hf_lock_release(u->held, E));
    COMES(conf_taker_has(&u->t));
    conf_taker_end(&u->t);
    conf_free(u->held);
    conf_free(u->wanted);
    OK(hf_close(u->a));
    OK(hf_close(u->b));
}

/* ---- descriptors and threads ------------------------------------------- */

enum { FDS = 4096 };

static void mark_open(bool *open)
{
    for (int fd = 0; fd < FDS; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void test_process_descriptors_are_close_on_exec(void)
{
    static bool before[FDS], during[FDS];
    struct used u;
    int ours = 0;

    mark_open(before);
    use(&u);
    mark_open(during);
    for (int fd = 0; fd < FDS; fd++) {
        if (before[fd] || !during[fd])
            continue;
        ours++;
        if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC)) {
            print_error("descriptor %d is inherited\n", fd);
            fail();
        }
    }
    assert_true(ours > 0);
    used(&u);
}

/* What is left after the last close is what was there before, however often:
 * descriptors, threads, mappings. */
static void test_process_leaves_nothing_behind(void)
{
    size_t fds = 0, tasks = 0;
    struct used u;

    for (int i = 0; i < 6; i++) {
        use(&u);
        used(&u);
        if (i == 0) { /* what is made once may stay */
            fds = conf_count_entries("/proc/self/fd");
            tasks = conf_count_entries("/proc/self/task");
        }
    }
    assert_int_equal(conf_count_entries("/proc/self/fd"), fds);
    COMES(conf_count_entries("/proc/self/task") == tasks);
}

static void test_process_failed_open_leaves_nothing_behind(void)
{
    size_t fds = conf_count_entries("/proc/self/fd");
    hf_client *c;

    for (int i = 0; i < 5; i++) {
        EXPECT(HF_EINVAL, hf_open(conf_url_with("nonsense=1"), NULL, &c, E));
        EXPECT(HF_EINVAL, hf_open(conf_url_with("ttl=never"), NULL, &c, E));
    }
    assert_int_equal(conf_count_entries("/proc/self/fd"), fds);
}

static size_t count_keepers(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[300], comm[32] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        f = fopen(path, "re");
        if (!f)
            continue;
        if (fgets(comm, sizeof(comm), f) && !strcmp(comm, "hf-keeper\n"))
            n++;
        fclose(f);
    }
    closedir(d);
    return n;
}

static void test_process_one_named_thread_per_client(void)
{
    size_t tasks = conf_count_entries("/proc/self/task");
    size_t keepers = count_keepers();
    hf_client *c[3];

    for (size_t i = 0; i < 3; i++) {
        c[i] = conf_open();
        assert_int_equal(conf_count_entries("/proc/self/task"), tasks + i + 1);
        COMES(count_keepers() == keepers + i + 1);
    }
    for (size_t i = 0; i < 3; i++)
        OK(hf_close(c[i]));
    COMES(count_keepers() == keepers);
}

/* ---- signals ----------------------------------------------------------- */

static void test_process_signals_are_left_alone(void)
{
    struct sigaction before[NSIG], after;
    sigset_t mask, now;
    struct used u;

    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, NULL, &before[sig]);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    use(&u);
    for (int sig = 1; sig < NSIG; sig++) {
        if (sigaction(sig, NULL, &after))
            continue;
        assert_ptr_equal(after.sa_handler, before[sig].sa_handler);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int sig = 1; sig < NSIG; sig++)
        assert_int_equal(sigismember(&now, sig), sigismember(&mask, sig));
    used(&u);
}

/* ---- fork -------------------------------------------------------------- */

#define CHECK(code, call)                                                      \
    do {                                                                       \
        line = __LINE__;                                                       \
        if ((call) != (code))                                                  \
            return line;                                                       \
    } while (0)

static void done(void *arg, hf_lock *lock, int result)
{
    (void)arg;
    (void)lock;
    (void)result;
}

/* In the child: 0, or the line of what went wrong. */
static int try_everything(hf_client *c, hf_lock *held, hf_lock *handle,
                          const char *name)
{
    hf_error err = HF_ERROR_INIT;
    hf_part both[2] = {{.lock = held}, {.lock = handle}};
    hf_lock *lock = NULL;
    hf_info *info;
    hf_names *names;
    int line = 0;

    CHECK(HF_EFORK, hf_lock_acquire(held, NULL, &err));
    CHECK(HF_EFORK, err.code);
    CHECK(true, err.text[0] != '\0');
    CHECK(HF_EFORK, hf_lock_try(handle, NULL));
    CHECK(HF_EFORK, hf_lock_release(held, &err));
    CHECK(HF_EFORK, hf_lock_release_nowait(held, &err));
    CHECK(HF_EFORK, hf_lock_renew(held, 0, &err));
    CHECK(HF_EFORK, hf_lock_check(held));
    CHECK(HF_EFORK, hf_lock_token(held, &(uint64_t){0}));
    CHECK(HF_EFORK, hf_lock_deadline(held, &(int64_t){0}));
    CHECK(HF_EFORK, hf_lock_count(held, &(unsigned){0}));
    CHECK(HF_EFORK, hf_lock_fd(held));
    CHECK(HF_EFORK, hf_lock_cancel(handle));
    CHECK(HF_EFORK, hf_lock_upgrade(held, &err));
    CHECK(HF_EFORK, hf_lock_downgrade(held, &err));
    CHECK(HF_EFORK, hf_lock_acquire_async(handle, NULL, done, NULL, &err));
    CHECK(HF_EFORK, hf_lock_release_async(handle, done, NULL, &err));
    CHECK(HF_EFORK, hf_lock_acquire_all(both, 2, NULL, &err));
    CHECK(HF_EFORK, hf_lock_release_all(both, 2, &err));
    CHECK(HF_EFORK, hf_lock_new(c, name, HF_CSTRING, NULL, &lock, &err));
    CHECK(HF_EFORK, hf_client_fd(c));
    CHECK(HF_EFORK, hf_client_dispatch(c));
    CHECK(HF_EFORK, hf_inspect(c, name, HF_CSTRING, &info, &err));
    CHECK(HF_EFORK, hf_list(c, NULL, &names, &err));
    CHECK(HF_EFORK, hf_break(c, name, HF_CSTRING, &err));
    CHECK(HF_EFORK, hf_lock_free(handle));
    CHECK(HF_EFORK, hf_close(c));
    return 0;
}

/* A client of the child's own is somebody else. */
static int try_own_client(const char *name)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    int line = 0;

    opt.fairness = conf.fairness;
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

/* A line does not fit into an exit status: it goes through a pipe. */
static int in_child(int (*what)(void *), void *arg)
{
    int pipefd[2], line = -1;
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
    assert_int_equal(read(pipefd[0], &line, sizeof(line)), sizeof(line));
    close(pipefd[0]);
    assert_int_equal(exit_code(pid), 0);
    return line;
}

struct forked {
    hf_client *c;
    hf_lock *held, *handle;
    const char *name;
};

static int child(void *arg)
{
    struct forked *f = arg;
    int line = try_everything(f->c, f->held, f->handle, f->name);

    return line ? line : try_own_client(f->name);
}

static void test_process_fork_child_says_so_and_parent_holds_on(void)
{
    hf_client *b = conf_open();
    struct forked f = {.name = conf_name()};
    hf_lock *other = conf_lock(b, f.name);
    uint64_t token;
    int64_t forked_at;

    f.c = conf_open_ttl(900);
    f.held = conf_lock(f.c, f.name);
    f.handle = conf_lock_flags(f.c, conf_name(), HF_OWNER_HANDLE);
    OK(hf_lock_acquire(f.held, NULL, E));
    token = conf_token(f.held);
    forked_at = wait_now();
    assert_int_equal(in_child(child, &f), 0);
    OK(hf_lock_check(f.held)); /* the child's end has ended nothing */
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    COMES(wait_ms_since(forked_at) > 2 * 900); /* and it is renewed */
    OK(hf_lock_check(f.held));
    assert_true(conf_token(f.held) == token);
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    OK(hf_lock_release(f.held, E));
    OK(hf_lock_timed(other, WAIT_LONG_MS, E));
    OK(hf_lock_release(other, E));
    conf_free(f.held);
    conf_free(f.handle);
    conf_free(other);
    OK(hf_close(f.c));
    OK(hf_close(b));
}

const struct conf_case conf_process[] = {
    CONF_CASE(test_process_descriptors_are_close_on_exec, CONF_EACH),
    CONF_CASE(test_process_leaves_nothing_behind, CONF_EACH),
    CONF_CASE(test_process_failed_open_leaves_nothing_behind, 0),
    CONF_CASE(test_process_one_named_thread_per_client, 0),
    CONF_CASE(test_process_signals_are_left_alone, 0),
    CONF_CASE(test_process_fork_child_says_so_and_parent_holds_on, CONF_EACH),
    {0},
};
