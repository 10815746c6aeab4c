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
#include "base/text.h"
#include "run.h"

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

static int64_t grace(const struct running *running)
{
    /* Just before a renewal a third is left on ZooKeeper, two on Redis: half
     * of the less is for a renewal that is late. */
    return at_most(running->span / 6, GRACE_MAX);
}

static int64_t early(const struct running *running)
{
    return at_most(running->span / 20, EARLY_MAX);
}

/* The kernel may give the number of the group to another one as soon as the
 * command and the guardian, which is in the group, were both waited for. */
static void signal_group(const struct running *running, int signal_number)
{
    if (running->ended && running->command->guardian.pid < 0)
        return;
    kill(-running->command->pid, signal_number);
}

static void set_timer(const struct running *running)
{
    int64_t at = HF_NO_DEADLINE;

    if (running->kill_at != HF_NO_DEADLINE)
        at = running->kill_at;
    else if (!running->lost && running->deadline != HF_NO_DEADLINE)
        at = running->deadline - (running->only_warn ? 0 : grace(running));
    timer_set(running->timer, at);
}

static void tell_guardian(const struct running *running)
{
    int64_t at = HF_NO_DEADLINE;

    if (!running->only_warn && running->deadline != HF_NO_DEADLINE)
        at = running->deadline - early(running) / 2;
    guardian_tell(&running->command->guardian, at);
}

/* Without a word of the library's we did not run when it was time to renew, or
 * the guardian has kept the deadline in our place. */
static void say_why(const struct running *running, bool now)
{
    const char *then = running->only_warn ? "the command runs on without it"
                                          : "ending the command";
    hf_error why = HF_ERROR_INIT;
    size_t which = 0;
    int64_t deadline;

    if (holds_explain(running->holds, &which, &why) == HF_ELOST) {
        cli_say(&cli_run, "%s; %s", why.text, then);
        return;
    }
    holds_deadline(running->holds, &which, &deadline);
    if (!why.text[0])
        snprintf(why.text, sizeof why.text,
                 "holdfast was stopped or suspended%s",
                 now ? "" : " when it had to renew it");
    cli_say(&cli_run, "%s: %s: %s; %s",
            hf__show(running->holds->wanted->names[which]).text,
            now ? "the lock was lost" : "the lock cannot be renewed in time",
            why.text, then);
}

/* The hold is gone (now), or will be. */
static void lose(struct running *running, bool now)
{
    if (running->lost)
        return;
    running->lost = true;
    say_why(running, now);
    if (!running->only_warn) {
        running->kill_at = now ? cli_now_ns(CLOCK_BOOTTIME) + GRACE_LOST
                               : running->deadline - early(running);
        signal_group(running, SIGTERM);
        signal_group(running, SIGCONT); /* a stopped one does not see it else */
    }
    set_timer(running);
}

/* Something may have happened to the hold, or it may be time. */
static void look(struct running *running)
{
    int64_t now = cli_now_ns(CLOCK_BOOTTIME), deadline;

    if (now >= running->kill_at) {
        running->kill_at = HF_NO_DEADLINE;
        signal_group(running, SIGKILL);
    } else if (!running->lost) {
        if (holds_deadline(running->holds, NULL, &deadline) != HF_OK) {
            lose(running, true);
            return;
        }
        if (deadline != running->deadline) {
            running->deadline = deadline;
            tell_guardian(running);
        }
        if (deadline != HF_NO_DEADLINE && now >= deadline - grace(running) &&
            !running->only_warn) {
            lose(running, false);
            return;
        }
    }
    set_timer(running);
}

/* The terminal's user has stopped the command: stop as well, so that the
 * shell comes back. By TSTP, which the kernel does not let stop a group that
 * no shell could continue. */
static void stop_with_it(struct running *running)
{
    struct terminal *terminal = &running->command->terminal;
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
    look(running); /* nobody renewed meanwhile */
    if (given)
        terminal_give(terminal, running->command->pid);
    signal_group(running, SIGCONT);
}

static void stopped(struct running *running, int signal_number)
{
    struct terminal *terminal = &running->command->terminal;
    bool wants_it = signal_number == SIGTTIN || signal_number == SIGTTOU;

    if (wants_it && !terminal->given &&
        terminal_give(terminal, running->command->pid)) {
        signal_group(running, SIGCONT);
        return;
    }
    /* Without a terminal, or stopped by somebody else: we go on renewing. */
    if (terminal->fd >= 0 && (terminal->given || signal_number != SIGSTOP))
        stop_with_it(running);
}

/* KILL has been sent, by us or by the guardian: what is still there cannot be
 * ended. */
static bool is_beyond_us(const struct running *running)
{
    return !running->only_warn &&
           ((running->lost && running->kill_at == HF_NO_DEADLINE) ||
            cli_now_ns(CLOCK_BOOTTIME) >=
                running->deadline - early(running) / 2);
}

/* Another one, if somebody has killed it. */
static void keep_guardian(struct running *running)
{
    struct guardian *guardian = &running->command->guardian;

    if (!guardian_is_gone(guardian))
        return;
    if (is_beyond_us(running)) {
        signal_group(running, SIGKILL);
        return;
    }
    if (guardian_start(guardian) < 0 ||
        guardian_join(guardian, running->command->pid) < 0) {
        cli_say(&cli_run, "nothing guards the command: %s", strerror(errno));
        guardian_stop(guardian);
    }
    tell_guardian(running);
}

/* We are process 1 of a container, or were a shell: others' children become
 * ours, and zombies if nobody waits for them. */
static void reap_others(const struct running *running)
{
    const struct command *command = running->command;
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
static bool reap(struct running *running)
{
    struct command *command = running->command;
    int status;

    while (waitpid(command->pid, &status, WNOHANG | WUNTRACED) ==
           command->pid) {
        if (!WIFSTOPPED(status)) {
            command->status = status;
            running->ended = true;
            return true;
        }
        stopped(running, WSTOPSIG(status));
    }
    if (command->guardian.pid > 0)
        keep_guardian(running);
    reap_others(running);
    return false;
}

/* True when the command has ended. */
static bool take_signals(struct running *running)
{
    struct signalfd_siginfo info;

    while (read(running->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            if (reap(running))
                return true;
            break;
        case SIGTTIN:
        case SIGTTOU:
            break;
        case SIGCONT:
            look(running);
            signal_group(running, SIGCONT);
            break;
        default:
            signal_group(running, (int)info.ssi_signo);
        }
    }
    return false;
}

enum { SIGNALS, TIMER, ASKED, FIRST_LOCK };

static void loop(struct running *running)
{
    struct pollfd polled[FIRST_LOCK + LOCKS_MAX] = {
        [SIGNALS] = {running->signals, POLLIN, 0},
        [TIMER] = {running->timer, POLLIN, 0},
        [ASKED] = {holds_asked_fd(running->holds), POLLIN, 0}};
    int64_t write_at = cli_now_ns(CLOCK_BOOTTIME) + METRICS_MS * MS, left;
    nfds_t n = FIRST_LOCK, lost;

    for (size_t i = 0; i < running->holds->len; i++)
        polled[n++] = (struct pollfd){hf_lock_fd(running->holds->parts[i].lock),
                                      POLLIN, 0};
    look(running);
    if (reap(running))
        return;
    for (;;) {
        left = write_at - cli_now_ns(CLOCK_BOOTTIME);
        if (left <= 0 && running->metrics->file) {
            metrics_write(running->metrics);
            write_at += METRICS_MS * MS - left;
            continue;
        }
        if (poll(polled, n,
                 running->metrics->file ? (int)(left / MS) + 1 : -1) <= 0)
            continue;
        if (polled[SIGNALS].revents && take_signals(running))
            return;
        if (polled[ASKED].revents)
            holds_say_asked(running->holds);
        for (lost = FIRST_LOCK; lost < n && !polled[lost].revents;)
            lost++;
        if (polled[TIMER].revents || lost < n)
            look(running);
        if (running->lost)
            n = FIRST_LOCK; /* the others stay readable */
    }
}

/* Whatever is left of the group must not go on without the lock. */
static void end_group(struct running *running)
{
    /* The guardian may have ended the command, at the last deadline that it was
     * told (unless we only warn). Then the lock counts as lost, too. */
    if (holds_explain(running->holds, NULL, NULL) != HF_OK ||
        (!running->only_warn &&
         cli_now_ns(CLOCK_BOOTTIME) >= running->deadline - early(running)))
        lose(running, true);
    if (running->lost && !running->only_warn)
        signal_group(running, SIGKILL);
}

int running_init(struct running *running)
{
    sigset_t set;

    running->ended = running->lost = false;
    running->kill_at = HF_NO_DEADLINE;
    running->deadline = HF_NO_DEADLINE;
    holds_deadline(running->holds, NULL, &running->deadline);
    running->span = running->deadline - cli_now_ns(CLOCK_BOOTTIME);
    tell_guardian(running);

    patience_signals(&set);
    running->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    running->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (running->signals >= 0 && running->timer >= 0)
        return CLI_OK;
    cli_say(&cli_run, "cannot watch a command: %s", strerror(errno));
    return CLI_OSERR;
}

void running_fini(struct running *running)
{
    if (running->signals >= 0)
        close(running->signals);
    if (running->timer >= 0)
        close(running->timer);
}

void running_wait(struct running *running)
{
    loop(running);
    end_group(running);
    terminal_take(&running->command->terminal);
}
