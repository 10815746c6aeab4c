#include "exit_code.h"

#include <holdfast.h>
#include <pthread.h>
#include <signal.h>

int cli_exit_of(int code)
{
    switch (code) {
    case HF_OK:
        return CLI_OK;
    case HF_EBUSY:
    case HF_ETIMEDOUT:
    case HF_ECANCELED:
        return CLI_BUSY;
    case HF_ELOST:
        return CLI_LOST;
    case HF_ENOTOWNER:
        return CLI_FAILED;
    case HF_EINVAL:
    case HF_ENOTSUP:
    case HF_EMISMATCH:
    case HF_EDEADLK:
        return CLI_USAGE;
    case HF_EAUTH:
        return CLI_NOPERM;
    case HF_ENOMEM:
        return CLI_OSERR;
    default:
        return CLI_UNAVAILABLE;
    }
}

void cli_die_of(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
