/*
 * The guardian of `holdfast run`: a process that ends the command when holdfast
 * dies (by SIGKILL, too) or does not move its deadline on in time (stopped,
 * starved).
 *
 * It is moved into the command's process group before the command executes, and
 * ends the group by kill(0, SIGKILL). So there is no moment without cover, and
 * as long as it lives the number of the group cannot be reused. Its parent
 * calls all of these functions, and waits for it.
 */
#ifndef HF_CLI_GUARDIAN_H
#define HF_CLI_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guardian {
    pid_t pid;
    int fd;    /* our end; the guardian takes its closing for our death */
    int timer; /* shared with it */
};

/* 0 or -1 with errno. */
int guardian_start(struct guardian *guardian);
/* Moves it into the process group that it is to end. 0 or -1 with errno. */
int guardian_join(const struct guardian *guardian, pid_t group);
/* It ends the group at that time (CLOCK_BOOTTIME) unless a later one is set;
 * HF_NO_DEADLINE: never. */
void guardian_set_deadline(const struct guardian *guardian, int64_t kill_at_ns);
/* Somebody has killed it, or it has ended the group. */
bool guardian_is_gone(struct guardian *guardian);
/* Sends it away and waits until it is gone. */
void guardian_stop(struct guardian *guardian);

/* A timerfd of CLOCK_BOOTTIME; HF_NO_DEADLINE: off. */
void guardian_set_timer(int timer, int64_t at_ns);

#endif
