/*
 * The guardian: a process that does nothing but wait for our end.
 *
 * It ignores every signal, holds no descriptor but its end of a socket, and
 * knows that we died when the kernel closes ours. KILL and not TERM: in shared
 * memory the lock of a dead process is free at once, so whatever goes on does
 * so without it.
 *
 * It may be forked while the library's threads run, so that it uses only what
 * is safe after a fork of such a process.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD_FD = 3, GUARD_TIMER = 4, GUARD_OTHERS = 5 };

/* Leaves standard descriptors on /dev/null, the two given ones, no others: a
 * pipe that we kept open would keep its reader waiting. */
static void keep_only(int fd, int timer)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* Out of the way of the numbers that they are to have. */
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

static void set_timer(int64_t at_ns)
{
    struct itimerspec when = {{0, 0}, {0, 0}}; /* off */

    if (at_ns != HF_NO_DEADLINE) {
        when.it_value.tv_sec = at_ns / 1000000000;
        when.it_value.tv_nsec = at_ns % 1000000000;
    }
    timerfd_settime(GUARD_TIMER, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Returns when the group has to end. */
static void stand_guard(void)
{
    struct pollfd polled[2] = {{GUARD_FD, POLLIN, 0}, {GUARD_TIMER, POLLIN, 0}};
    int64_t message;
    ssize_t n;

    for (;;) {
        if (poll(polled, 2, -1) < 0)
            continue;
        if (polled[0].revents) {
            n = recv(GUARD_FD, &message, sizeof message, MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            if (n != (ssize_t)sizeof message)
                return; /* they are dead */
            set_timer(message);
        } else if (polled[1].revents) {
            return; /* their time is over */
        }
    }
}

/* home: the group that we come from, and not to be ended. Asked for before
 * the fork, as we may be moved before our first instruction. */
static _Noreturn void guardian_main(pid_t home, int fd, int timer)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (int i = 1; i < NSIG; i++)
        sigaction(i, &ignore, NULL);
    prctl(PR_SET_NAME, "hf-guardian", 0, 0, 0);
    keep_only(fd, timer);
    if (chdir("/") < 0) {
        /* Then a file system stays busy for as long as the command runs. */
    }
    stand_guard();
    if (getpgrp() != home)
        kill(0, SIGKILL);
    _exit(0);
}

int guardian_start(struct guardian *guardian)
{
    pid_t home = getpgrp();
    int fds[2], timer, saved;

    guardian->pid = -1;
    guardian->fd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -1;
    timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (timer >= 0)
        guardian->pid = fork();
    if (guardian->pid == 0) {
        /* Else it would keep our end open for us. */
        close(fds[0]);
        guardian_main(home, fds[1], timer);
    }
    saved = errno;
    close(fds[1]);
    if (timer >= 0)
        close(timer);
    if (guardian->pid < 0) {
        close(fds[0]);
        errno = saved;
        return -1;
    }
    guardian->fd = fds[0];
    return 0;
}

int guardian_join(const struct guardian *guardian, pid_t group)
{
    return setpgid(guardian->pid, group);
}

void guardian_tell(const struct guardian *guardian, int64_t kill_at_ns)
{
    /* It is gone, or has not read the last 200 of these: watch.c sees the one,
     * and the other errs on the side of ending the command. */
    send(guardian->fd, &kill_at_ns, sizeof kill_at_ns,
         MSG_NOSIGNAL | MSG_DONTWAIT);
}

void guardian_stop(struct guardian *guardian)
{
    if (guardian->pid < 0)
        return;
    /* Before the socket closes, and so that it helps if it is stopped, too. */
    kill(guardian->pid, SIGKILL);
    while (waitpid(guardian->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(guardian->fd);
    guardian->fd = guardian->pid = -1;
}
