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

#include "cli.h"

#include <signal.h>
#include <sys/types.h>

struct run_options {
    const char *url, *name, *label, *shell_command;
    int64_t wait_ms; /* HF_FOREVER: as long as it takes; 0: not at all */
    int64_t ttl_ms;  /* 0: as the URL says */
    enum hf_kind kind;
    enum hf_mode mode;
    enum hf_fairness fairness;
    int busy_exit;
    bool only_warn, quiet, help;
    bool shared, exclusive, nonblock, fair, unfair; /* was said */
    char **argv;
    char *shell_argv[4];
};

extern const char run_usage[];

/* CLI_OK, or CLI_USAGE after having said why. */
int run_parse(struct run_options *options, int argc, char **argv);

/*
 * Waiting for the server, then for the lock. A failure that may pass
 * (hf_error.may_pass) does not end the wait: both functions try again as long
 * as -w allows, for ever without it, not at all with -n. One line on standard
 * error says what they wait for.
 */
struct patience {
    const struct run_options *o;
    int64_t begun_at; /* CLOCK_BOOTTIME: the time of -w begins */
    int64_t pause_ms; /* the last one */
    bool said;
};

/* The signal that ended the wait, or 0. */
extern volatile sig_atomic_t patience_caught;

/* hf_open(). Signals keep their usual effect: there is nothing to undo yet. */
int patience_open(struct patience *patience, const char *url,
                  hf_client_options *options, hf_client **out, hf_error *err);
/* hf_lock_acquire(). A signal that would have ended us ends the wait first, so
 * that we leave the queue. The signals are blocked when it returns. */
int patience_acquire(struct patience *patience, hf_lock *lock, hf_error *err);

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
    sigset_t mask; /* what was blocked when we were started */
};

/* Starts it in a process group of its own, guarded, if the lock is still held
 * then. CLI_OK, or the exit code after having said why. */
int command_start(struct command *command, hf_lock *held);

struct watch {
    struct command *command;
    hf_lock *lock;
    const char *name;
    bool only_warn; /* --on-lost warn */

    bool ended;         /* the command, and was waited for */
    bool lost;          /* and said so */
    int64_t deadline;   /* as last seen */
    int64_t span;       /* a lease at its beginning */
    int64_t kill_at;    /* after TERM was sent, else HF_NO_DEADLINE */
    int signals, timer; /* descriptors */
};

/* The signals that are passed on; blocked while the command runs. */
void watch_signals(sigset_t *set);
/* Before the command starts: the guardian learns the deadline. CLI_OK or
 * CLI_OSERR. */
int watch_init(struct watch *watch);
void watch_fini(struct watch *watch);
/* Returns when the command has ended; command->status is set, and
 * watch->lost. */
void watch_run(struct watch *watch);

#endif
