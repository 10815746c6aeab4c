/*
 * The parts of `holdfast run`. Three processes:
 *
 *   holdfast   holds the lock, passes signals on, waits for the command
 *   guardian   sleeps; ends the command when holdfast dies (-9 too) or does
 *              not move its deadline on in time (stopped, starved)
 *   command    leads a process group of its own
 *
 * The guardian is moved into the command's process group before the command
 * is let go. So it ends the group by kill(0, SIGKILL): there is no moment
 * without cover, and as long as it lives the group's number cannot come to
 * mean somebody else.
 */
#ifndef HF_CLI_RUN_H
#define HF_CLI_RUN_H

#include "lock_set.h"

struct run_options {
    struct wanted wanted;
    const char *shell_command;
    const char *metrics; /* a file, or NULL */
    bool only_warn, verbose;
    char **argv;
    char *shell_argv[4];
};

extern const struct cli_flag run_flags[];
extern const char run_notes[];

/* CLI_OK, or CLI_USAGE after having said why. */
int run_parse(struct run_options *options, int argc, char **argv);

struct guardian {
    pid_t pid;
    int fd;    /* our end; the guardian takes its closing for our death */
    int timer; /* shared with it */
};

/* 0 or -1 with errno. */
int guardian_start(struct guardian *guardian);
/* Moves it into the process group that it is to end. 0 or -1 with errno. */
int guardian_join(const struct guardian *guardian, pid_t group);
/* It ends the group at that time (CLOCK_BOOTTIME) unless told a later one;
 * HF_NO_DEADLINE: never. */
void guardian_tell(const struct guardian *guardian, int64_t kill_at_ns);
/* Somebody has killed it, or it has ended the group. */
bool guardian_is_gone(struct guardian *guardian);
/* Sends it away and waits until it is gone. */
void guardian_stop(struct guardian *guardian);

/* A timerfd of CLOCK_BOOTTIME; HF_NO_DEADLINE: off. */
void timer_set(int timer, int64_t at_ns);

/* Who may read from the terminal: our process group or the command's. */
struct terminal {
    int fd; /* -1: there is none */
    bool given;
};

void terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
/* The command is an interactive job of its own: it gets the terminal now. */
bool terminal_wanted_at_once(const struct terminal *terminal);
/* False if it is not ours to give. */
bool terminal_give(struct terminal *terminal, pid_t group);
void terminal_take(struct terminal *terminal);

struct command {
    char **argv;
    pid_t pid; /* also its process group */
    int status;
    struct guardian guardian;
    struct terminal terminal;
    sigset_t mask;        /* what was blocked when we were started */
    void (*on_pipe)(int); /* and what SIGPIPE did */
};

/* Starts it in a process group of its own, guarded, if the locks are still held
 * then. CLI_OK, or the exit code after having said why. */
int command_start(struct command *command, const struct holds *held);

/* A thread writes the file: a disk that hangs must not keep us from moving the
 * deadline on. It is never joined, so that the struct has to be static. */
struct metrics {
    const char *file; /* NULL: nothing is written */
    const char *names;
    hf_client *client;

    bool started; /* the thread */
    pthread_mutex_t mu;
    pthread_cond_t changed;
    char *text; /* to be written next; mu */
    size_t len;
    bool is_writing; /* mu */
    bool said;       /* that it cannot be written; the thread's, once started */
};

enum { METRICS_MS = 15000 }; /* between two while the command runs */

/* Takes the numbers of now and has them written. A failure is said once, and
 * has no other effect. */
void metrics_write(struct metrics *metrics);
/* Waits until all is written, for a second at most. */
void metrics_finish(struct metrics *metrics);

struct running {
    struct command *command;
    struct metrics *metrics;
    const struct holds *holds;
    bool only_warn; /* --on-lost warn */

    bool ended;         /* the command, and was waited for */
    bool lost;          /* and said so */
    int64_t deadline;   /* the first of all, as last seen */
    int64_t span;       /* a lease at its beginning */
    int64_t kill_at;    /* after TERM was sent, else HF_NO_DEADLINE */
    int signals, timer; /* descriptors */
};

/* Before the command starts: the guardian learns the deadline. CLI_OK or
 * CLI_OSERR. */
int running_init(struct running *running);
void running_fini(struct running *running);
/* Returns when the command has ended; command->status is set, and
 * running->lost. */
void running_wait(struct running *running);

#endif
