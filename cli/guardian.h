/*
 * The guardian of `holdfast run`: a process that ends the command when holdfast
 * dies (even by SIGKILL) or does not extend the deadline in time (stopped,
 * starved).
 *
 * It is moved into the command's process group before the command executes, and
 * ends the group by kill(0, SIGKILL). So the command is guarded at any moment,
 * and while the guardian lives the number of the group cannot be reused. Its
 * parent calls all of these functions, and waits for it.
 */
#ifndef HF_CLI_GUARDIAN_H
#define HF_CLI_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guardian {
    pid_t pid;
    int fd;    /* our end of the pipe: if it closes, we have died */
    int timer; /* shared with it */
};

/* Returns 0, or -1 with errno. */
int guardian_start(struct guardian *guardian);
/* Moves it into the process group that it must end. Returns 0, or -1 with
 * errno. */
int guardian_join(const struct guardian *guardian, pid_t group);
/* It ends the group at that time (CLOCK_BOOTTIME) unless a later time is set
 * before; HF_NO_DEADLINE: never. */
void guardian_set_deadline(const struct guardian *guardian, int64_t kill_at_ns);
/* True if it was killed, or has ended the group. */
bool guardian_is_gone(struct guardian *guardian);
/* Ends it, and waits until it is gone. */
void guardian_stop(struct guardian *guardian);

/* Sets a timerfd of CLOCK_BOOTTIME; HF_NO_DEADLINE disarms it. */
void guardian_set_timer(int timer, int64_t at_ns);

#endif
