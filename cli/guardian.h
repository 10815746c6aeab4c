/*
 * The guardian of `holdfast run`: a process that ends the command when holdfast
 * dies (even by SIGKILL) or does not extend the deadline in time (stopped,
 * starved).
 *
 * It is moved into the command's process group before the command executes, and
 * ends the group by kill(0, SIGKILL). The command is therefore guarded at any
 * moment, and the number of the group cannot be reused while the guardian
 * lives. Only the guardian's parent, which waits for it, calls these functions.
 */
#ifndef HF_CLI_GUARDIAN_H
#define HF_CLI_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guardian {
    pid_t pid;
    int fd;    /* the parent's end of the pipe, closed by the parent's death */
    int timer; /* a timerfd, shared with the guardian */
};

/* Forks the guardian. Returns 0, or -1 with errno. */
int guardian_start(struct guardian *guardian);
/* Moves the guardian into the process group that it must end. Returns 0, or -1
 * with errno. */
int guardian_join(const struct guardian *guardian, pid_t group);
/* Sets the time (CLOCK_BOOTTIME) at which the guardian ends the group, unless a
 * later call sets another time first. HF_NO_DEADLINE means never. */
void guardian_set_deadline(const struct guardian *guardian, int64_t kill_at_ns);
/* Returns true if the guardian is dead, because it was killed or has ended the
 * group. In that case also closes the guardian's descriptors. */
bool guardian_is_gone(struct guardian *guardian);
/* Kills the guardian, if there is one, and waits for its end. */
void guardian_stop(struct guardian *guardian);

/* Sets a timerfd of CLOCK_BOOTTIME; HF_NO_DEADLINE disarms it. */
void guardian_set_timer(int timer, int64_t at_ns);

#endif
