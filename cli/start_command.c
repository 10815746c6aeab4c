/*
 * Starts the command.
 *
 * The forked child waits until the guardian has joined the child's process
 * group, and then executes the command. If the parent dies before that, the
 * child exits. The child also sets PR_SET_PDEATHSIG first, so that the kernel
 * kills it when the parent dies. That is sooner than the guardian can act, but
 * does not reach processes that the command starts.
 */
#include "start_command.h"

#include "shared/exit_code.h"
#include "shared/message.h"

#include <errno.h>
#include <fcntl.h>
#include <holdfast.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Executes the command in the forked child. Another thread may have held a
 * mutex at the fork, and does not exist in the child to unlock it. Therefore
 * the child calls only functions that are safe after a fork. */
static _Noreturn void command_become(const struct command *command,
                                     pid_t parent, int go, int failure)
{
    char word;
    int why;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    if (getppid() != parent || read(go, &word, 1) != 1)
        _exit(CLI_OSERR);
    sigprocmask(SIG_SETMASK, &command->mask, NULL);
    signal(SIGPIPE, command->on_pipe);
    execvp(command->argv[0], command->argv);
    why = errno;
    if (write(failure, &why, sizeof why) < 0)
        _exit(CLI_CANNOT_RUN);
    _exit(CLI_NOT_FOUND);
}

static void command_take_back(struct command *command)
{
    kill(command->pid, SIGKILL);
    while (waitpid(command->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    command->pid = -1;
}

static int command_give_up(struct command *command, const char *what, int why)
{
    cli_say(command->verb, "%s: %s", what, strerror(why));
    if (command->pid > 0)
        command_take_back(command);
    return CLI_OSERR;
}

/* Lets the child execute the command, and waits until that has succeeded or
 * failed. Returns CLI_OK, or the exit status after printing the reason. */
static int command_let_go(struct command *command, int go, int failure)
{
    ssize_t n;
    int why;

    if (write(go, "", 1) != 1)
        return command_give_up(command, "cannot start the command", errno);
    do {
        n = read(failure, &why, sizeof why);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof why)
        return CLI_OK; /* exec has closed the pipe */
    terminal_take(&command->terminal);
    command_give_up(command, command->argv[0], why);
    return why == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

static int start_between(struct command *command, const struct held_locks *held,
                         int go[2], int failure[2])
{
    hf_error why = HF_ERROR_INIT;
    pid_t parent = getpid();

    command->pid = fork();
    if (command->pid < 0)
        return command_give_up(command, "cannot fork", errno);
    if (command->pid == 0) {
        close(go[1]); /* so that the parent's death closes the pipe */
        command_become(command, parent, go[0], failure[1]);
    }
    close(failure[1]);
    failure[1] = -1;
    /* The child makes the same call, because either process may run first. */
    setpgid(command->pid, command->pid);
    if (guardian_join(&command->guardian, command->pid) < 0)
        return command_give_up(command, "cannot guard the command", errno);
    /* This process may have been stopped until after the deadline. The guardian
     * may then have ended before it was in the group, and so would not end the
     * command. */
    if (held_locks_explain(held, NULL, &why) != HF_OK) {
        cli_say(command->verb, "%s: not started: %s", command->argv[0],
                why.text);
        command_take_back(command);
        return CLI_LOST;
    }
    if (terminal_wanted_at_once(&command->terminal))
        terminal_give(&command->terminal, command->pid);
    return command_let_go(command, go[1], failure[0]);
}

int command_start(struct command *command, const struct held_locks *held)
{
    int go[2] = {-1, -1}, failure[2] = {-1, -1};
    int status;

    command->pid = -1;
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failure, O_CLOEXEC) < 0)
        status = command_give_up(command, "cannot create a pipe", errno);
    else
        status = start_between(command, held, go, failure);
    for (int i = 0; i < 2; i++) {
        if (go[i] >= 0)
            close(go[i]);
        if (failure[i] >= 0)
            close(failure[i]);
    }
    return status;
}
