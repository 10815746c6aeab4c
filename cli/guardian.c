/*
 * The guardian: a process that only waits until it has to end the command.
 *
 * It ignores every signal. It waits on two descriptors. One is the read end of
 * a pipe; when the parent dies, the kernel closes the write end. The other is a
 * timer that the parent sets. The guardian need not read a message to get a new
 * deadline, so the newest deadline counts even if the guardian was stopped. It
 * sends KILL and not TERM, because in shared memory the lock is free as soon as
 * the parent is dead: a command that handled TERM first would run without the
 * lock.
 *
 * The guardian may be forked while threads of the library run. It therefore
 * calls only functions that are safe after a fork of a multithreaded process.
 */
#include "guardian.h"

#include "shared/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUARD_FD = 3, GUARD_TIMER = 4, GUARD_OTHERS = 5 };

/* Keeps only the standard descriptors, which become /dev/null, and the two
 * given descriptors. If the guardian kept an inherited pipe open, a reader of
 * that pipe would wait for its end until the guardian ends. */
static void guardian_keep_only(int fd, int timer)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* Moves the descriptors away from the numbers that are assigned below. */
    fd = fcntl(fd, F_DUPFD_CLOEXEC, GUARD_OTHERS);
    timer = fcntl(timer, F_DUPFD_CLOEXEC, GUARD_OTHERS);
    null = fcntl(null, F_DUPFD_CLOEXEC, GUARD_OTHERS);
    for (int i = 0; i < 3; i++) {
        if (null < 0 || dup2(null, i) < 0)
            close(i);
    }
    if (dup2(fd, GUARD_FD) < 0 || dup2(timer, GUARD_TIMER) < 0)
        _exit(CLI_OSERR);
    close_range(GUARD_OTHERS, ~0U, 0);
}

/* Waits until the group must end, because the parent is dead or the deadline
 * has passed. */
static void guardian_stand_guard(void)
{
    struct pollfd polled[2] = {{GUARD_FD, POLLIN, 0}, {GUARD_TIMER, POLLIN, 0}};

    while (poll(polled, 2, -1) < 0) {
    }
}

/* The parameter `home' is the parent's process group, which must not be ended.
 * It is read before the fork, because the parent may move the guardian to
 * another group before the guardian's first instruction. */
static _Noreturn void guardian_main(pid_t home, int fd, int timer)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (int i = 1; i < NSIG; i++)
        sigaction(i, &ignore, NULL);
    prctl(PR_SET_NAME, "hf-guardian", 0, 0, 0);
    guardian_keep_only(fd, timer);
    if (chdir("/") < 0) {
        /* If chdir() fails, the file system of the current directory cannot be
         * unmounted while the guardian runs. */
    }
    guardian_stand_guard();
    if (getpgrp() != home)
        kill(0, SIGKILL);
    _exit(0);
}

static void guardian_close_both(struct guardian *guardian)
{
    close(guardian->fd);
    close(guardian->timer);
    guardian->fd = guardian->timer = guardian->pid = -1;
}

int guardian_start(struct guardian *guardian)
{
    pid_t home = getpgrp();
    int fds[2], saved;

    guardian->fd = guardian->timer = guardian->pid = -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    guardian->fd = fds[1];
    guardian->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (guardian->timer >= 0)
        guardian->pid = fork();
    if (guardian->pid == 0) {
        /* The guardian must not keep the parent's end of the pipe open. */
        close(guardian->fd);
        guardian_main(home, fds[0], guardian->timer);
    }
    saved = errno;
    close(fds[0]);
    if (guardian->pid > 0)
        return 0;
    guardian_close_both(guardian);
    errno = saved;
    return -1;
}

int guardian_join(const struct guardian *guardian, pid_t group)
{
    return setpgid(guardian->pid, group);
}

void guardian_set_deadline(const struct guardian *guardian, int64_t kill_at_ns)
{
    guardian_set_timer(guardian->timer, kill_at_ns);
}

bool guardian_is_gone(struct guardian *guardian)
{
    if (waitpid(guardian->pid, NULL, WNOHANG) != guardian->pid)
        return false;
    guardian_close_both(guardian);
    return true;
}

void guardian_stop(struct guardian *guardian)
{
    if (guardian->pid < 0)
        return;
    /* The guardian is killed before the pipe closes, so that it does not end
     * the group. KILL works even if the guardian is stopped. */
    kill(guardian->pid, SIGKILL);
    while (waitpid(guardian->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    guardian_close_both(guardian);
}

void guardian_set_timer(int timer, int64_t at_ns)
{
    struct itimerspec when = {{0, 0}, {0, 0}}; /* disarmed */

    if (at_ns != HF_NO_DEADLINE) {
        when.it_value.tv_sec = at_ns / 1000000000;
        when.it_value.tv_nsec = at_ns % 1000000000;
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}
