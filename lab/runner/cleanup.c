/*
 * The runner and a cleanup process are connected by a socket pair instead of a
 * pipe, because the cleanup process also sends the pid of its child to the
 * runner.
 */
#include "cleanup.h"

#include "../../cli/shared/exit_code.h"
#include "clock.h"
#include "die.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLEANUPS = 64, END_FD = 3, CLEAN_S = 60, TRIES = 500, PAUSE_MS = 20 };

/* The cleanup processes of this process, for cleanup_end(). */
static struct {
    int end;
    pid_t pid;
} cleanups[CLEANUPS];
static size_t cleanups_len;

struct plan {
    void (*run)(void *arg);
    int (*clean)(void *arg);
    void *arg;
};

/* The functions from here to cleanup_main() run in a cleanup process, and those
 * after it, up to cleanup_end(), in the runner. The last two functions of this
 * file run in cleanup processes and in the supervisor. */
static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

static void cleanup_set_signals(void (*handler)(int))
{
    sigset_t none;

    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
        signal(ignored[i], handler);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Replaces standard input and output by /dev/null, and closes all other
 * descriptors except the socket and standard error. With a copy of standard
 * output in this process, a reader of the runner's output would not see the end
 * of the output. With a copy of the runner's end of another socket, another
 * cleanup process would keep waiting. */
static void cleanup_drop_descriptors(int end_fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (end_fd != END_FD)
        dup3(end_fd, END_FD, O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    close_range(END_FD + 1, ~0U, 0);
}

static pid_t cleanup_start_child(const struct plan *plan)
{
    pid_t parent = getpid(), pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    setsid();
    cleanup_set_signals(SIG_DFL);
    plan->run(plan->arg);
    _exit(127);
}

static void cleanup_await_end(void)
{
    char byte;
    ssize_t n;

    do
        n = read(END_FD, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
}

static void cleanup_end_child(pid_t child)
{
    kill(child, SIGKILL); /* before the child calls setsid(), it has no group of
                             its own */
    kill(-child, SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
}

/* Handles SIGALRM: ends this process if clean() takes longer than CLEAN_S. Only
 * a server that was given by a URL and does not answer can make clean() so
 * slow. */
static void cleanup_give_up(int number)
{
    static const char text[] = "holdfast lab: a server does not answer; keys "
                               "or tables of the lab may remain there\n";

    (void)number;
    if (write(2, text, sizeof(text) - 1) < 0) {
        /* There is no other place for the message. */
    }
    _exit(CLEANUP_FAILED);
}

static _Noreturn void cleanup_main(int end_fd, const struct plan *plan)
{
    pid_t child = 0;

    setsid();
    cleanup_set_signals(SIG_IGN);
    cleanup_drop_descriptors(end_fd);
    if (plan->run) {
        /* Lets this process reap what the child leaves behind. */
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        child = cleanup_start_child(plan);
        send(END_FD, &child, sizeof(child), MSG_NOSIGNAL);
    }
    cleanup_await_end();
    if (child > 0)
        cleanup_end_child(child);
    signal(SIGALRM, cleanup_give_up);
    alarm(CLEAN_S);
    _exit(plan->clean(plan->arg) ? CLEANUP_FAILED : 0);
}

static int start_cleanup(const struct plan *plan)
{
    int ends[2];
    pid_t pid;

    if (cleanups_len == CLEANUPS)
        lab_die(CLI_FAILED, "more than %d servers at a time", CLEANUPS);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        lab_die(CLI_OSERR, "cannot create a socket pair: %s", strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        lab_die(CLI_OSERR, "cannot fork: %s", strerror(errno));
    if (pid == 0)
        cleanup_main(ends[1], plan);
    close(ends[1]);
    cleanups[cleanups_len].end = ends[0];
    cleanups[cleanups_len++].pid = pid;
    return ends[0];
}

int cleanup_start(int (*clean)(void *arg), void *arg)
{
    struct plan plan = {.clean = clean, .arg = arg};

    return start_cleanup(&plan);
}

int cleanup_run(void (*run)(void *arg), int (*clean)(void *arg), void *arg,
                pid_t *child)
{
    struct plan plan = {.run = run, .clean = clean, .arg = arg};
    int end = start_cleanup(&plan);
    ssize_t n;

    do
        n = read(end, child, sizeof(*child));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*child) || *child < 0)
        lab_die(CLI_OSERR,
                "the process that starts and ends a server cannot fork");
    return end;
}

void cleanup_end(int end)
{
    size_t i = 0;

    while (i < cleanups_len && cleanups[i].end != end)
        i++;
    if (i == cleanups_len)
        return;
    shutdown(end, SHUT_RDWR); /* not only close(), because actors have copies of
                                 the socket */
    close(end);
    while (waitpid(cleanups[i].pid, NULL, 0) < 0 && errno == EINTR)
        ;
    cleanups[i] = cleanups[--cleanups_len];
}

static int cleanup_remove_one(const char *path, const struct stat *st, int type,
                              struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    remove(path); /* continues with the other files even if this fails */
    return 0;
}

int cleanup_remove(const char *directory)
{
    for (int i = 0; i < TRIES; i++) {
        nftw(directory, cleanup_remove_one, 16, FTW_DEPTH | FTW_PHYS);
        if (access(directory, F_OK) < 0)
            return 0;
        lab_sleep_ms(PAUSE_MS); /* a server that is being killed still writes */
    }
    return -1;
}
