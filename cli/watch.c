/*
 * While the command runs: signals go to its process group, its stops and
 * its end come back, and the hold's deadline is kept.
 *
 * The deadline: renewals move it on. When it comes nearer than the grace
 * period, some renewals have failed: the group gets TERM, and KILL shortly
 * before the deadline. A hold that is gone already (broken, evicted) leaves
 * the group a moment only. The guardian knows the deadline too, and keeps it
 * if we are stopped or starved. All on CLOCK_BOOTTIME: time asleep counts.
 */
#include "run.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define GRACE_MAX (5000 * MS) /* between TERM and KILL, while we hold it */
#define GRACE_LOST (200 * MS) /* the same, when we do not hold it any more */
#define EARLY_MAX (100 * MS)  /* KILL is that much before the deadline */

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static int64_t grace(const struct watch *watch)
{
    /* Just before a renewal a third is left on ZooKeeper, two on Redis: half
     * of the less is for a renewal that is late. */
    return at_most(watch->span / 6, GRACE_MAX);
}

static int64_t early(const struct watch *watch)
{
    return at_most(watch->span / 20, EARLY_MAX);
}

/* The number means the group as long as the command, or the guardian who is in
 * it, has not been waited for. */
static void signal_group(const struct watch *watch, int signal_number)
{
    if (watch->ended && watch->command->guardian.pid < 0)
        return;
    kill(-watch->command->pid, signal_number);
}

static void set_timer(const struct watch *watch)
{
    int64_t at = HF_NO_DEADLINE;

    if (watch->kill_at != HF_NO_DEADLINE)
        at = watch->kill_at;
    else if (!watch->lost && watch->deadline != HF_NO_DEADLINE)
        at = watch->deadline - (watch->only_warn ? 0 : grace(watch));
    timer_set(watch->timer, at);
}

static void tell_guardian(const struct watch *watch)
{
    int64_t at = HF_NO_DEADLINE;

    if (!watch->only_warn && watch->deadline != HF_NO_DEADLINE)
        at = watch->deadline - early(watch) / 2;
    guardian_tell(&watch->command->guardian, at);
}

/* Without a word of the library's we did not run when it was time to renew, or
 * the guardian has kept the deadline in our place. */
static void say_why(const struct watch *watch, bool now)
{
    const char *then = watch->only_warn ? "the command runs on without it"
                                        : "ending the command";
    hf_error why = HF_ERROR_INIT;
    size_t which = 0;
    int64_t deadline;

    if (holds_explain(watch->holds, &which, &why) == HF_ELOST) {
        cli_say(&cli_run, "%s; %s", why.text, then);
        return;
    }
    holds_deadline(watch->holds, &which, &deadline);
    if (!why.text[0])
        snprintf(why.text, sizeof why.text,
                 "holdfast was stopped or suspended%s",
                 now ? "" : " when it had to renew it");
    cli_say(&cli_run, "%s: %s: %s; %s",
            hf__show(watch->holds->wanted->names[which]).text,
            now ? "the lock was lost" : "the lock cannot be renewed in time",
            why.text, then);
}

/* The hold is gone (now), or will be. */
static void lose(struct watch *watch, bool now)
{
    if (watch->lost)
        return;
    watch->lost = true;
    say_why(watch, now);
    if (!watch->only_warn) {
        watch->kill_at = now ? cli_now_ns(CLOCK_BOOTTIME) + GRACE_LOST
                             : watch->deadline - early(watch);
        signal_group(watch, SIGTERM);
        signal_group(watch, SIGCONT); /* a stopped one does not see it else */
    }
    set_timer(watch);
}

/* Something may have happened to the hold, or it may be time. */
static void look(struct watch *watch)
{
    int64_t now = cli_now_ns(CLOCK_BOOTTIME), deadline;

    if (now >= watch->kill_at) {
        watch->kill_at = HF_NO_DEADLINE;
        signal_group(watch, SIGKILL);
    } else if (!watch->lost) {
        if (holds_deadline(watch->holds, NULL, &deadline) != HF_OK) {
            lose(watch, true);
            return;
        }
        if (deadline != watch->deadline) {
            watch->deadline = deadline;
            tell_guardian(watch);
        }
        if (deadline != HF_NO_DEADLINE && now >= deadline - grace(watch) &&
            !watch->only_warn) {
            lose(watch, false);
            return;
        }
    }
    set_timer(watch);
}

/* The terminal's user has stopped the command: stop as well, so that the
 * shell comes back. By TSTP, which the kernel does not let stop a group that
 * no shell could continue. */
static void stop_with_it(struct watch *watch)
{
    struct terminal *terminal = &watch->command->terminal;
    bool given = terminal->given;
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    terminal_take(terminal);
    /* ^Z went to the command alone if it had the terminal: the others of our
     * group, a script perhaps, have yet to hear of it. */
    kill(given ? 0 : getpid(), SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    look(watch); /* nobody renewed meanwhile */
    if (given)
        terminal_give(terminal, watch->command->pid);
    signal_group(watch, SIGCONT);
}

static void stopped(struct watch *watch, int signal_number)
{
    struct terminal *terminal = &watch->command->terminal;
    bool wants_it = signal_number == SIGTTIN || signal_number == SIGTTOU;

    if (wants_it && !terminal->given &&
        terminal_give(terminal, watch->command->pid)) {
        signal_group(watch, SIGCONT);
        return;
    }
    /* Without a terminal, or stopped by somebody else: we go on renewing. */
    if (terminal->fd >= 0 && (terminal->given || signal_number != SIGSTOP))
        stop_with_it(watch);
}

/* KILL has been sent, by us or by the guardian: what is still there cannot be
 * ended. */
static bool is_beyond_us(const struct watch *watch)
{
    return !watch->only_warn &&
           ((watch->lost && watch->kill_at == HF_NO_DEADLINE) ||
            cli_now_ns(CLOCK_BOOTTIME) >= watch->deadline - early(watch) / 2);
}

/* Another one, if somebody has killed it. */
static void keep_guardian(struct watch *watch)
{
    struct guardian *guardian = &watch->command->guardian;

    if (!guardian_is_gone(guardian))
        return;
    if (is_beyond_us(watch)) {
        signal_group(watch, SIGKILL);
        return;
    }
    if (guardian_start(guardian) < 0 ||
        guardian_join(guardian, watch->command->pid) < 0) {
        cli_say(&cli_run, "nothing guards the command: %s", strerror(errno));
        guardian_stop(guardian);
    }
    tell_guardian(watch);
}

/* We are process 1 of a container, or were a shell: others' children become
 * ours, and zombies if nobody waits for them. */
static void reap_others(const struct watch *watch)
{
    const struct command *command = watch->command;
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

/* True when the command has ended. */
static bool reap(struct watch *watch)
{
    struct command *command = watch->command;
    int status;

    while (waitpid(command->pid, &status, WNOHANG | WUNTRACED) ==
           command->pid) {
        if (!WIFSTOPPED(status)) {
            command->status = status;
            watch->ended = true;
            return true;
        }
        stopped(watch, WSTOPSIG(status));
    }
    if (command->guardian.pid > 0)
        keep_guardian(watch);
    reap_others(watch);
    return false;
}

/* True when the command has ended. */
static bool take_signals(struct watch *watch)
{
    struct signalfd_siginfo info;

    while (read(watch->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            if (reap(watch))
                return true;
            break;
        case SIGTTIN:
        case SIGTTOU:
            break;
        case SIGCONT:
            look(watch);
            signal_group(watch, SIGCONT);
            break;
        default:
            signal_group(watch, (int)info.ssi_signo);
        }
    }
    return false;
}

enum { SIGNALS, TIMER, ASKED, FIRST_LOCK };

static void loop(struct watch *watch)
{
    struct pollfd polled[FIRST_LOCK + LOCKS_MAX] = {
        [SIGNALS] = {watch->signals, POLLIN, 0},
        [TIMER] = {watch->timer, POLLIN, 0},
        [ASKED] = {holds_asked_fd(watch->holds), POLLIN, 0}};
    int64_t write_at = cli_now_ns(CLOCK_BOOTTIME) + METRICS_MS * MS, left;
    nfds_t n = FIRST_LOCK, lost;

    for (size_t i = 0; i < watch->holds->len; i++)
        polled[n++] =
            (struct pollfd){hf_lock_fd(watch->holds->parts[i].lock), POLLIN, 0};
    look(watch);
    if (reap(watch))
        return;
    for (;;) {
        left = write_at - cli_now_ns(CLOCK_BOOTTIME);
        if (left <= 0 && watch->metrics->file) {
            metrics_write(watch->metrics);
            write_at += METRICS_MS * MS - left;
            continue;
        }
        if (poll(polled, n, watch->metrics->file ? (int)(left / MS) + 1 : -1) <=
            0)
            continue;
        if (polled[SIGNALS].revents && take_signals(watch))
            return;
        if (polled[ASKED].revents)
            holds_say_asked(watch->holds);
        for (lost = FIRST_LOCK; lost < n && !polled[lost].revents;)
            lost++;
        if (polled[TIMER].revents || lost < n)
            look(watch);
        if (watch->lost)
            n = FIRST_LOCK; /* the others stay readable */
    }
}

/* Whatever is left of the group must not go on without the lock. */
static void end_group(struct watch *watch)
{
    /* Or the guardian, who has a time to keep if we do not only warn, has ended
     * it: then that time was the last that it was told. */
    if (holds_explain(watch->holds, NULL, NULL) != HF_OK ||
        (!watch->only_warn &&
         cli_now_ns(CLOCK_BOOTTIME) >= watch->deadline - early(watch)))
        lose(watch, true);
    if (watch->lost && !watch->only_warn)
        signal_group(watch, SIGKILL);
}

int watch_init(struct watch *watch)
{
    sigset_t set;

    watch->ended = watch->lost = false;
    watch->kill_at = HF_NO_DEADLINE;
    watch->deadline = HF_NO_DEADLINE;
    holds_deadline(watch->holds, NULL, &watch->deadline);
    watch->span = watch->deadline - cli_now_ns(CLOCK_BOOTTIME);
    tell_guardian(watch);

    patience_signals(&set);
    watch->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    watch->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (watch->signals >= 0 && watch->timer >= 0)
        return CLI_OK;
    cli_say(&cli_run, "cannot watch a command: %s", strerror(errno));
    return CLI_OSERR;
}

void watch_fini(struct watch *watch)
{
    if (watch->signals >= 0)
        close(watch->signals);
    if (watch->timer >= 0)
        close(watch->timer);
}

void watch_run(struct watch *watch)
{
    loop(watch);
    end_group(watch);
    terminal_take(&watch->command->terminal);
}
