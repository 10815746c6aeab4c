/*
 * holdfast hold: keeps locks until standard input closes or a signal arrives.
 *
 * The script that started holdfast continues while the locks are held, and
 * reads the tokens from holdfast's output. If the script dies, the pipe to
 * standard input closes, and the locks are released.
 */
#include "base/text.h"
#include "client.h"
#include "held_locks.h"
#include "json.h"
#include "lock_options.h"
#include "lock_set.h"
#include "nested.h"
#include "server_wait.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/verb.h"
#include "verbs.h"

#include <errno.h>
#include <getopt.h>
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_flag hold_flags[] = {
    LOCK_OPTIONS_FLAGS,
    CLI_FLAG_JSON,
    CLI_FLAG_END,
};

static const char hold_notes[] =
    "Prints the token of each lock on a line of its own, then keeps the lock. "
    "For a\nscript that cannot wrap a command:\n"
    "\n"
    "  mkfifo gate\n"
    "  holdfast hold nightly <gate >token &  in the background\n"
    "  exec 9>gate                           the lock is kept while 9 is open\n"
    "  until [ -s token ]; do kill -0 $! || exit; sleep 0.1; done\n"
    "  ...                                   here the lock is held\n"
    "  exec 9>&-                             release it\n"
    "\n"
    "Exit status: 0 released, 75 not acquired, 79 lost, 69 the backend cannot "
    "be\nused, 64 usage; see holdfast-hold(1).\n";

struct tokens {
    uint64_t of[LOCKS_MAX];
};

static void hold_print_json(const struct lock_options *w,
                            const struct tokens *tokens)
{
    json_open(NULL, '{');
    json_name("name", w->names[0], strlen(w->names[0]));
    json_unsigned("token", tokens->of[0]);
    json_open("locks", '[');
    for (size_t i = 0; i < w->len; i++) {
        json_open(NULL, '{');
        json_name("name", w->names[i], strlen(w->names[i]));
        json_unsigned("token", tokens->of[i]);
        json_close('}');
    }
    json_close(']');
    json_close('}');
    json_end();
}

/* Prints the tokens. Returns CLI_OK, or the exit status after printing the
 * reason. */
static int hold_print_tokens(const struct held_locks *held, bool json)
{
    const struct lock_options *w = held->options;
    struct tokens tokens = {{0}};

    for (size_t i = 0; i < held->len; i++) {
        int rc = hf_lock_token(held->parts[i].lock, &tokens.of[i]);

        if (rc != HF_OK)
            return cli_failed(w->verb, hf__show(w->names[i]).text, rc, NULL);
    }
    if (json)
        hold_print_json(w, &tokens);
    for (size_t i = 0; i < held->len && !json; i++)
        printf("%llu\n", (unsigned long long)tokens.of[i]);
    return cli_finish(CLI_OK);
}

enum { INPUT, SIGNALS, ASKED, FIRST_LOCK };

/* Drops the input that has arrived. Returns true at the end of the input, or if
 * the input cannot be read. If this process is in the background, reading from
 * a terminal fails with EIO. That is not the end of the input; the terminal is
 * then no longer polled. */
static bool hold_input_is_closed(struct pollfd *input)
{
    char dropped[4096];
    ssize_t n = read(input->fd, dropped, sizeof dropped);

    if (n >= 0 || errno == EINTR || errno == EAGAIN)
        return n == 0;
    if (errno != EIO || !isatty(input->fd))
        return true;
    input->fd = -1;
    return false;
}

/* Reads the signals that have arrived. Returns true if one of them ends the
 * process. The other blocked signals have no effect. */
static bool hold_is_told_to_end(int signals)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGTERM:
        case SIGINT:
        case SIGHUP:
        case SIGQUIT:
        case SIGUSR1:
        case SIGUSR2:
            return true;
        default:
            break;
        }
    }
    return false;
}

static bool hold_is_lost(const struct held_locks *held)
{
    hf_error why = HF_ERROR_INIT;

    if (held_locks_explain(held, NULL, &why) == HF_OK)
        return false;
    cli_say(&cli_hold, "%s", why.text);
    return true;
}

/* Waits until the locks should be released, and returns CLI_OK; or returns
 * CLI_LOST after printing the reason. */
static int hold_keep(const struct held_locks *held, int signals)
{
    struct pollfd polled[FIRST_LOCK + LOCKS_MAX] = {
        [INPUT] = {STDIN_FILENO, POLLIN, 0},
        [SIGNALS] = {signals, POLLIN, 0},
        [ASKED] = {held_locks_asked_fd(held), POLLIN, 0}};

    for (size_t i = 0; i < held->len; i++)
        polled[FIRST_LOCK + i] =
            (struct pollfd){hf_lock_fd(held->parts[i].lock), POLLIN, 0};
    for (;;) {
        if (poll(polled, FIRST_LOCK + held->len, -1) < 0)
            continue;
        if (polled[ASKED].revents)
            held_locks_say_asked(held);
        if (hold_is_lost(held))
            return CLI_LOST;
        if (polled[SIGNALS].revents && hold_is_told_to_end(signals))
            return CLI_OK;
        if (polled[INPUT].revents && hold_input_is_closed(&polled[INPUT]))
            return CLI_OK;
    }
}

/* Warns if standard input is a file, or is /dev/null, which a shell gives to a
 * command in the background: such an input ends at once, and the locks are then
 * released. */
static void hold_warn_of_no_input(const struct lock_options *w)
{
    struct stat input, null;

    if (w->quiet || fstat(STDIN_FILENO, &input) != 0 ||
        stat("/dev/null", &null) != 0)
        return;
    if (S_ISREG(input.st_mode) ||
        (S_ISCHR(input.st_mode) && input.st_rdev == null.st_rdev))
        cli_say(&cli_hold,
                "standard input is %s, so the lock is released at once; "
                "connect standard input to a pipe that stays open",
                S_ISREG(input.st_mode) ? "a file" : "/dev/null");
}

static int hold_taken(struct lock_set *locks, bool json)
{
    sigset_t set;
    int status, signals;

    server_wait_signals(&set);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) {
        cli_say(&cli_hold, "cannot watch the lock: %s", strerror(errno));
        status = CLI_OSERR;
    } else {
        signal(SIGPIPE, SIG_IGN);
        hold_warn_of_no_input(locks->options);
        status = hold_print_tokens(&locks->held, json);
        if (status == CLI_OK && !locks->options->quiet &&
            isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
            cli_say(&cli_hold, "held; ^D or ^C releases it");
    }
    if (status == CLI_OK)
        status = hold_keep(&locks->held, signals);
    if (status == CLI_LOST) {
        held_locks_release_nowait(&locks->held);
        _exit(status);
    }
    return lock_set_release(locks, status, false);
}

static int hold_parse(struct lock_options *w, bool *json, int argc, char **argv)
{
    const char *name;
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_flag(&cli_hold, argc, argv)) != -1) {
        if (option == CLI_JSON)
            *json = true;
        else
            status = lock_options_take(w, option, optarg);
    }
    if (status != CLI_OK)
        return status;
    if (w->len > 0 && argc > optind)
        return cli_misuse(w->verb, "`%s' after -l; give only one of them",
                          argv[optind]);
    if (w->len == 0) {
        status = cli_name(w->verb, argc - optind, argv + optind, w->url, &name);
        if (status == CLI_OK)
            status = lock_options_name(w, name);
    }
    return status == CLI_OK ? lock_options_check(w) : status;
}

static int hold_main(int argc, char **argv)
{
    struct lock_options w = LOCK_OPTIONS_INIT(&cli_hold);
    struct lock_set locks = {.options = &w};
    bool json = false;
    int status = hold_parse(&w, &json, argc, argv);

    if (status != CLI_OK)
        return status;
    pthread_sigmask(SIG_SETMASK, NULL, &locks.mask);
    nested_find(&locks.nested, &w);
    if (lock_set_acquire(&locks, &status))
        status = hold_taken(&locks, json);
    lock_set_close(&locks);
    if (server_wait_caught)
        cli_die_of(server_wait_caught);
    return status;
}

const struct cli_verb cli_hold = {
    .name = "hold",
    .summary = "keeps a lock until standard input closes or a signal arrives",
    .synopsis = "hold [OPTION...] NAME\n"
                "hold [OPTION...] -l NAME [-l NAME...]",
    .about =
        "Acquires the lock NAME, or all locks of -l, prints its token, and "
        "keeps it until standard input is closed or a signal arrives.",
    .flags = hold_flags,
    .notes = hold_notes,
    .operand = CLI_LOCK_NAME,
    .main = hold_main,
};
