/*
 * Passes the terminal to the command and takes it back, because only the
 * foreground process group may read from the terminal. A command that is an
 * interactive job by itself gets the terminal at once.
 *
 * In a script or a pipeline, other processes of holdfast's group may need the
 * terminal. There the command gets the terminal only after TTIN or TTOU has
 * stopped the command, because it tried to read from the terminal or to
 * configure it (run_supervise.c). Until then, ^C sends a signal to the script
 * and to holdfast, which passes the signal on to the command.
 */
#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    terminal->given = false;
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

bool terminal_wanted_at_once(const struct terminal *terminal)
{
    return terminal->fd >= 0 && getpgrp() == getpid() && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

bool terminal_give(struct terminal *terminal, pid_t group)
{
    if (terminal->fd < 0 || tcgetpgrp(terminal->fd) != getpgrp())
        return false;
    terminal->given = tcsetpgrp(terminal->fd, group) == 0;
    return terminal->given;
}

/* TTOU is blocked, so tcsetpgrp() does not stop this process. */
void terminal_take(struct terminal *terminal)
{
    if (terminal->given)
        tcsetpgrp(terminal->fd, getpgrp());
    terminal->given = false;
}
