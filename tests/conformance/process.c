/* The library's effects on its process: descriptors, threads, signals. */
#include "conf.h"

#include <dirent.h>
#include <signal.h>

/* Uses every feature that creates a descriptor or a thread. */
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
    conf_close(u->a);
    conf_close(u->b);
}

enum { FDS = 4096 };

static void mark_open(bool *open)
{
    for (int fd = 0; fd < FDS; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

CONF_CASE(test_process_descriptors_are_close_on_exec, CONF_EACH)
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

/* However often the process uses all features and closes the clients, it has as
 * many descriptors and threads afterwards as after the first time. */
CONF_CASE(test_process_leaves_nothing_behind, CONF_EACH)
{
    size_t fds = 0, tasks = 0;
    struct used u;

    for (int i = 0; i < 6; i++) {
        use(&u);
        used(&u);
        if (i == 0) { /* some resources are created once and stay */
            fds = conf_count_entries("/proc/self/fd");
            /* Joined threads may still exist for a moment and be counted
             * here. */
            tasks = conf_count_entries("/proc/self/task");
        }
    }
    assert_int_equal(conf_count_entries("/proc/self/fd"), fds);
    COMES(conf_count_entries("/proc/self/task") <= tasks);
}

CONF_CASE(test_process_failed_open_leaves_nothing_behind, 0)
{
    size_t fds = conf_count_entries("/proc/self/fd");
    hf_client *c;

    for (int i = 0; i < 5; i++) {
        EXPECT(HF_EINVAL, hf_open(conf_url_with("nonsense=1"), NULL, &c, E));
        EXPECT(HF_EINVAL, hf_open(conf_url_with("ttl=never"), NULL, &c, E));
    }
    assert_int_equal(conf_count_entries("/proc/self/fd"), fds);
}

static size_t count_helpers(void)
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
        if (fgets(comm, sizeof(comm), f) && !strcmp(comm, "hf-helper\n"))
            n++;
        fclose(f);
    }
    closedir(d);
    return n;
}

/* Returns the number of threads; counts again until joined threads no longer
 * exist. */
static size_t count_tasks_that_stay(void)
{
    size_t tasks;

    do
        tasks = conf_count_entries("/proc/self/task");
    while (!NEVER_MS(conf_count_entries("/proc/self/task") != tasks, 20));
    return tasks;
}

CONF_CASE(test_process_one_named_thread_per_client, 0)
{
    size_t tasks = count_tasks_that_stay();
    size_t helpers = count_helpers();
    hf_client *c[3];

    for (size_t i = 0; i < 3; i++) {
        c[i] = conf_open();
        assert_int_equal(conf_count_entries("/proc/self/task"), tasks + i + 1);
        COMES(count_helpers() == helpers + i + 1);
    }
    for (size_t i = 0; i < 3; i++)
        conf_close(c[i]);
    COMES(count_helpers() == helpers);
}

CONF_CASE(test_process_signals_are_left_alone, 0)
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
