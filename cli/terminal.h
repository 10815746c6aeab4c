/*
 * Says which process group may read from the terminal: ours or the command's.
 * The functions have no effect if there is no terminal. SIGTTOU must be
 * blocked.
 */
#ifndef HF_CLI_TERMINAL_H
#define HF_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd; /* -1: there is none */
    bool given;
};

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
/* If the command is an interactive job of its own, it gets the terminal now. */
bool terminal_wanted_at_once(const struct terminal *terminal);
/* False if it is not ours to give. */
bool terminal_give(struct terminal *terminal, pid_t group);
void terminal_take(struct terminal *terminal);

#endif
