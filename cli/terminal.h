/*
 * Decides which process group may read from the terminal: holdfast's or the
 * command's. The functions have no effect if there is no terminal. SIGTTOU must
 * be blocked.
 */
#ifndef HF_CLI_TERMINAL_H
#define HF_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd; /* -1: there is none */
    bool given;
};

/* Opens /dev/tty, if there is a terminal. */
void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
/* Returns true if an interactive shell started holdfast by itself, not in a
 * script or a pipeline; the command then gets the terminal at once. */
bool terminal_wanted_at_once(const struct terminal *terminal);
/* Makes `group' the foreground group. Returns false if the group of this
 * process is not the foreground group. */
bool terminal_give(struct terminal *terminal, pid_t group);
/* Takes the terminal back, if it was given. */
void terminal_take(struct terminal *terminal);

#endif
