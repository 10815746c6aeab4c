/* The process of a test's server, and its directory. */
#ifndef TESTS_SERVER_PROCESS_H
#define TESTS_SERVER_PROCESS_H

#include "wait.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* After a fork: becomes the server, which ends with its parent. */
static inline _Noreturn void server_process_exec(const char *const *argv,
                                                 pid_t parent)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent)
        execvp(argv[0], (char *const *)argv);
    _exit(127);
}

/* It is gone when this returns; nothing to do if there is none. */
static inline void server_process_kill(pid_t *pid)
{
    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *pid = 0;
}

/* SIGSTOP, and stopped for sure. */
static inline int server_process_stop(pid_t pid)
{
    if (kill(pid, SIGSTOP))
        return -1;
    return WAIT_FOR(wait_state(pid, pid) == 'T') ? 0 : -1;
}

static inline int server_dir_remove_one(const char *path, const struct stat *st,
                                        int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* With all that is in it. */
static inline int server_dir_remove(const char *dir)
{
    return nftw(dir, server_dir_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
