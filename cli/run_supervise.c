/*
 * While the command runs: passes signals to its process group, reacts when the
 * command stops or ends, and enforces the deadline of the hold.
 *
 * Renewals extend the deadline. If less than the grace period is left until the
 * deadline, some renewals have failed: the group gets TERM, and KILL shortly
 * before the deadline. If the hold has already ended (broken, evicted), only a
 * moment passes between the two signals. With --on-lost warn neither signal is
 * sent. The guardian knows the deadline too, and enforces it if this process is
 * stopped or starved. All times are CLOCK_BOOTTIME, which includes the time
 * that the machine was suspended.
 */
#include "run_supervise.h"

#include "base/text.h"
#include "guardian.h"
#include "lock_options.h"
#include "server_wait.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/values.h"
#include "terminal.h"

#include <errno.h>
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
/* longest time between TERM and KILL, while the lock is held */
#define GRACE_MAX (5000 * MS)
#define GRACE_LOST (200 * MS) /* from TERM to KILL after a loss */
#define EARLY_MAX (100 * MS)  /* how long before the deadline KILL is sent */

static int64_t supervise_at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static int64_t supervise_grace(const struct supervision *supervision)
{
    /* Just before a renewal, a third of the TTL is left on ZooKeeper, and two
     * thirds on Redis. The grace period is half of that third; the other half
     * is left for a renewal that is late. */
    return supervise_at_most(supervision->span / 6, GRACE_MAX);
}

static int64_t supervise_early(const struct supervision *supervision)
{
    return supervise_at_most(supervision->span / 20, EARLY_MAX);
}

/* Sends a signal to the process group. Sends nothing after the command and the
 * guardian, which are both in the group, have been waited for, because the
 * kernel may then reuse the group's number. */
static void supervise_signal_group(const struct supervision *supervision,
                                   int signal_number)
{
    if (supervision->ended && supervision->command->guardian.pid < 0)
        return;
    kill(-supervision->command->pid, signal_number);
}

static void supervise_set_timer(const struct supervision *supervision)
{
    int64_t at = HF_NO_DEADLINE;

    if (supervision->kill_at != HF_NO_DEADLINE)
        at = supervision->kill_at;
    else if (!supervision->lost && supervision->deadline != HF_NO_DEADLINE)
        at = supervision->deadline -
             (supervision->only_warn ? 0 : supervise_grace(supervision));
    guardian_set_timer(supervision->timer, at);
}

static void supervise_update_guardian(const struct supervision *supervision)
{
    int64_t at = HF_NO_DEADLINE;

    if (!supervision->only_warn && supervision->deadline != HF_NO_DEADLINE)
        at = supervision->deadline - supervise_early(supervision) / 2;
    guardian_set_deadline(&supervision->command->guardian, at);
}

/* Prints why the lock is or will be lost. If the library gives no reason, this
 * process did not run when a renewal was due, or it did not run at the
 * deadline, on which the guardian has then acted. */
static void supervise_say_why(const struct supervision *supervision, bool now)
{
    const char *then = supervision->only_warn
                           ? "the command continues without it"
                           : "ending the command";
    hf_error why = HF_ERROR_INIT;
    size_t which = 0;
    int64_t deadline;

    if (held_locks_explain(supervision->held, &which, &why) == HF_ELOST) {
        cli_say(supervision->held->options->verb, "%s; %s", why.text, then);
        return;
    }
    held_locks_deadline(supervision->held, &which, &deadline);
    if (!why.text[0])
        snprintf(why.text, sizeof why.text,
                 "holdfast was stopped or suspended%s",
                 now ? "" : " when the lock had to be renewed");
    cli_say(supervision->held->options->verb,
            now ? "lost the lock \"%s\": %s; %s"
                : "cannot renew the lock \"%s\" in time: %s; %s",
            hf__show(supervision->held->options->names[which]).text, why.text,
            then);
}

/* Acts on a loss. The hold has already ended if `now' is set; otherwise it will
 * end at the deadline. */
static void supervise_lose(struct supervision *supervision, bool now)
{
    if (supervision->lost)
        return;
    supervision->lost = true;
    supervise_say_why(supervision, now);
    if (!supervision->only_warn) {
        supervision->kill_at =
            now ? cli_now_ns(CLOCK_BOOTTIME) + GRACE_LOST
                : supervision->deadline - supervise_early(supervision);
        supervise_signal_group(supervision, SIGTERM);
        /* A stopped process handles TERM only when it continues. */
        supervise_signal_group(supervision, SIGCONT);
    }
    supervise_set_timer(supervision);
}

/* Sends KILL if it is due. Before a loss, checks the holds and the deadline. */
static void supervise_check_locks(struct supervision *supervision)
{
    int64_t now = cli_now_ns(CLOCK_BOOTTIME), deadline;

    if (now >= supervision->kill_at) {
        supervision->kill_at = HF_NO_DEADLINE;
        supervise_signal_group(supervision, SIGKILL);
    } else if (!supervision->lost) {
        if (held_locks_deadline(supervision->held, NULL, &deadline) != HF_OK) {
            supervise_lose(supervision, true);
            return;
        }
        if (deadline != supervision->deadline) {
            supervision->deadline = deadline;
            supervise_update_guardian(supervision);
        }
        if (deadline != HF_NO_DEADLINE &&
            now >= deadline - supervise_grace(supervision) &&
            !supervision->only_warn) {
            supervise_lose(supervision, false);
            return;
        }
    }
    supervise_set_timer(supervision);
}

/* Called when the user of the terminal has stopped the command. Stops
 * holdfast's process group too, so that the shell prompts again. Uses TSTP and
 * not STOP: the kernel ignores TSTP for a group that no shell could
 * continue. */
static void supervise_stop_with_it(struct supervision *supervision)
{
    struct terminal *terminal = &supervision->command->terminal;
    bool given = terminal->given;
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    terminal_take(terminal);
    /* If the command had the terminal, ^Z reached only the command. The other
     * processes of holdfast's group, perhaps a script, are therefore stopped
     * here. */
    kill(given ? 0 : getpid(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* this process stops here */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    supervise_check_locks(supervision); /* renewals had stopped, too */
    if (given)
        terminal_give(terminal, supervision->command->pid);
    supervise_signal_group(supervision, SIGCONT);
}

static void supervise_stopped(struct supervision *supervision,
                              int signal_number)
{
    struct terminal *terminal = &supervision->command->terminal;
    bool wants_it = signal_number == SIGTTIN || signal_number == SIGTTOU;

    if (wants_it && !terminal->given &&
        terminal_give(terminal, supervision->command->pid)) {
        supervise_signal_group(supervision, SIGCONT);
        return;
    }
    /* holdfast does not stop, and continues to renew, if there is no terminal,
     * or if SIGSTOP has stopped a command that does not have the terminal. */
    if (terminal->fd >= 0 && (terminal->given || signal_number != SIGSTOP))
        supervise_stop_with_it(supervision);
}

/* Returns true if KILL is due, or was sent by this process or by the guardian.
 * Another guardian would then be useless. */
static bool supervise_is_beyond_us(const struct supervision *supervision)
{
    return !supervision->only_warn &&
           ((supervision->lost && supervision->kill_at == HF_NO_DEADLINE) ||
            cli_now_ns(CLOCK_BOOTTIME) >=
                supervision->deadline - supervise_early(supervision) / 2);
}

/* Starts another guardian if the current one was killed. */
static void supervise_keep_guardian(struct supervision *supervision)
{
    struct guardian *guardian = &supervision->command->guardian;

    if (!guardian_is_gone(guardian))
        return;
    if (supervise_is_beyond_us(supervision)) {
        supervise_signal_group(supervision, SIGKILL);
        return;
    }
    if (guardian_start(guardian) < 0 ||
        guardian_join(guardian, supervision->command->pid) < 0) {
        cli_say(supervision->held->options->verb,
                "nothing guards the command: %s", strerror(errno));
        guardian_stop(guardian);
    }
    supervise_update_guardian(supervision);
}

/* Waits for ended children that this process has not started; otherwise they
 * would remain zombies. Process 1 of a container, or a process that has
 * replaced a shell, has such children. */
static void supervise_reap_others(const struct supervision *supervision)
{
    const struct command *command = supervision->command;
    siginfo_t gone;

    for (;;) {
        gone.si_pid = 0;
        if (waitid(P_ALL, 0, &gone, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            !gone.si_pid || gone.si_pid == command->pid ||
            gone.si_pid == command->guardian.pid)
            return;
        waitpid(gone.si_pid, NULL, WNOHANG);
    }
}

/* Handles children that have stopped or ended. Returns true when the command
 * has ended. */
static bool supervise_reap(struct supervision *supervision)
{
    struct command *command = supervision->command;
    int status;

    while (waitpid(command->pid, &status, WNOHANG | WUNTRACED) ==
           command->pid) {
        if (!WIFSTOPPED(status)) {
            command->status = status;
            supervision->ended = true;
            return true;
        }
        supervise_stopped(supervision, WSTOPSIG(status));
    }
    if (command->guardian.pid > 0)
        supervise_keep_guardian(supervision);
    supervise_reap_others(supervision);
    return false;
}

/* Handles the signals that have arrived. Returns true when the command has
 * ended. */
static bool supervise_take_signals(struct supervision *supervision)
{
    struct signalfd_siginfo info;

    while (read(supervision->signals, &info, sizeof info) ==
           (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            if (supervise_reap(supervision))
                return true;
            break;
        case SIGTTIN:
        case SIGTTOU:
            break;
        case SIGCONT:
            supervise_check_locks(supervision);
            supervise_signal_group(supervision, SIGCONT);
            break;
        default:
            supervise_signal_group(supervision, (int)info.ssi_signo);
        }
    }
    return false;
}

enum { SIGNALS, TIMER, ASKED, FIRST_LOCK };

static void supervise_loop(struct supervision *supervision)
{
    struct pollfd polled[FIRST_LOCK + LOCKS_MAX] = {
        [SIGNALS] = {supervision->signals, POLLIN, 0},
        [TIMER] = {supervision->timer, POLLIN, 0},
        [ASKED] = {held_locks_asked_fd(supervision->held), POLLIN, 0}};
    int64_t write_at = cli_now_ns(CLOCK_BOOTTIME) + RUN_METRICS_MS * MS, left;
    nfds_t n = FIRST_LOCK, lost;

    for (size_t i = 0; i < supervision->held->len; i++)
        polled[n++] = (struct pollfd){
            hf_lock_fd(supervision->held->parts[i].lock), POLLIN, 0};
    supervise_check_locks(supervision);
    if (supervise_reap(supervision))
        return;
    for (;;) {
        left = write_at - cli_now_ns(CLOCK_BOOTTIME);
        if (left <= 0 && supervision->metrics->file) {
            run_metrics_write(supervision->metrics);
            write_at += RUN_METRICS_MS * MS - left;
            continue;
        }
        if (poll(polled, n,
                 supervision->metrics->file ? (int)(left / MS) + 1 : -1) <= 0)
            continue;
        if (polled[SIGNALS].revents && supervise_take_signals(supervision))
            return;
        if (polled[ASKED].revents)
            held_locks_say_asked(supervision->held);
        for (lost = FIRST_LOCK; lost < n && !polled[lost].revents;)
            lost++;
        if (polled[TIMER].revents || lost < n)
            supervise_check_locks(supervision);
        if (supervision->lost)
            n = FIRST_LOCK; /* no longer polls locks: the descriptor of a lost
                               lock stays readable */
    }
}

/* If the lock is lost, ends the processes that the command has left running in
 * its group, because none of them may continue without the lock (unless
 * only_warn is set). */
static void supervise_end_group(struct supervision *supervision)
{
    /* The guardian may have ended the command at the last deadline that it was
     * given (unless only_warn is set). The lock then counts as lost, too. */
    if (held_locks_explain(supervision->held, NULL, NULL) != HF_OK ||
        (!supervision->only_warn &&
         cli_now_ns(CLOCK_BOOTTIME) >=
             supervision->deadline - supervise_early(supervision)))
        supervise_lose(supervision, true);
    if (supervision->lost && !supervision->only_warn)
        supervise_signal_group(supervision, SIGKILL);
}

int supervise_init(struct supervision *supervision)
{
    sigset_t set;

    supervision->ended = supervision->lost = false;
    supervision->kill_at = HF_NO_DEADLINE;
    supervision->deadline = HF_NO_DEADLINE;
    held_locks_deadline(supervision->held, NULL, &supervision->deadline);
    supervision->span = supervision->deadline - cli_now_ns(CLOCK_BOOTTIME);
    supervise_update_guardian(supervision);

    server_wait_signals(&set);
    supervision->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    supervision->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (supervision->signals >= 0 && supervision->timer >= 0)
        return CLI_OK;
    cli_say(supervision->held->options->verb, "cannot watch a command: %s",
            strerror(errno));
    return CLI_OSERR;
}

void supervise_fini(struct supervision *supervision)
{
    if (supervision->signals >= 0)
        close(supervision->signals);
    if (supervision->timer >= 0)
        close(supervision->timer);
}

void supervise_wait(struct supervision *supervision)
{
    supervise_loop(supervision);
    supervise_end_group(supervision);
    terminal_take(&supervision->command->terminal);
}
