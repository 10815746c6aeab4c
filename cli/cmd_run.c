/* holdfast run: acquires the locks, runs the command, releases the locks. */
#include "base/text.h"
#include "guardian.h"
#include "held_locks.h"
#include "lock_options.h"
#include "lock_set.h"
#include "nested.h"
#include "run_metrics.h"
#include "run_options.h"
#include "run_supervise.h"
#include "server_wait.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/values.h"
#include "shared/verb.h"
#include "start_command.h"
#include "terminal.h"
#include "verbs.h"

#include <errno.h>
#include <holdfast.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int run_exit_status(const struct supervision *supervision)
{
    int status = supervision->command->status;

    if (supervision->lost && !supervision->only_warn)
        return CLI_LOST;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* These variables are put into the environment before the library starts
 * threads, because changing the environment is not safe while another thread
 * may read it. The digits of the tokens are filled in later. */
static char token_variable[] = "HOLDFAST_TOKEN=00000000000000000000";
static char tokens_variable[sizeof "HOLDFAST_TOKENS=" + LOCKS_MAX * 21] =
    "HOLDFAST_TOKENS=";

/* Returns all names, separated by newlines, or NULL if there is no memory. */
static char *run_join_names(const struct lock_options *w)
{
    size_t size = 1;
    char *all, *end;

    for (size_t i = 0; i < w->len; i++)
        size += strlen(w->names[i]) + 1;
    all = end = calloc(size, 1);
    for (size_t i = 0; all && i < w->len; i++)
        end += sprintf(end, "%s%s", i ? "\n" : "", w->names[i]);
    return all;
}

static int run_export_names(const struct lock_options *w)
{
    char *all = run_join_names(w);
    int status = CLI_OSERR;

    if (all && setenv("HOLDFAST_NAMES", all, 1) == 0 &&
        setenv("HOLDFAST_NAME", w->names[0], 1) == 0 &&
        putenv(token_variable) == 0 && putenv(tokens_variable) == 0)
        status = nested_export(w);
    if (status != CLI_OK)
        cli_say(&cli_run, "%s", strerror(errno));
    free(all);
    return status;
}

static int run_export_tokens(const struct held_locks *held)
{
    size_t end = strlen("HOLDFAST_TOKENS=");
    uint64_t token = 0;

    for (size_t i = 0; i < held->len; i++) {
        int rc = hf_lock_token(held->parts[i].lock, &token);

        if (rc != HF_OK)
            return cli_failed(&cli_run, hf__show(held->options->names[i]).text,
                              rc, NULL);
        end += (size_t)sprintf(tokens_variable + end, "%s%llu", i ? "\n" : "",
                               (unsigned long long)token);
        if (i == 0)
            snprintf(token_variable, sizeof token_variable,
                     "HOLDFAST_TOKEN=%llu", (unsigned long long)token);
    }
    return CLI_OK;
}

static struct run_metrics metrics = {.verb = &cli_run};

/* Prints the messages that flock(1) prints with --verbose. */
static void run_say_acquired(const struct lock_set *locks,
                             const struct run_options *o)
{
    int64_t ns = cli_now_ns(CLOCK_BOOTTIME) - locks->server_wait.begun_at;

    cli_say(&cli_run, "getting lock took %lld.%06lld seconds",
            (long long)(ns / 1000000000), (long long)(ns % 1000000000 / 1000));
    cli_say(&cli_run, "executing %s", o->argv[0]);
}

static int run_holding(struct lock_set *locks, const struct run_options *o,
                       struct command *command)
{
    struct supervision supervision = {.command = command,
                                      .metrics = &metrics,
                                      .held = &locks->held,
                                      .only_warn = o->only_warn,
                                      .signals = -1,
                                      .timer = -1};
    int status = run_export_tokens(&locks->held);

    if (status == CLI_OK)
        status = supervise_init(&supervision);
    if (status == CLI_OK && o->verbose)
        run_say_acquired(locks, o);
    run_metrics_write(&metrics);
    run_metrics_finish(&metrics);
    if (status == CLI_OK)
        status = command_start(command, &locks->held);
    if (status == CLI_OK) {
        supervise_wait(&supervision);
        status = run_exit_status(&supervision);
    }
    supervise_fini(&supervision);
    if (supervision.lost) {
        /* If the lock was lost because the server cannot be reached, the server
         * will not answer the release, either, and holdfast must not delay its
         * caller by waiting for that answer. */
        held_locks_release_nowait(&locks->held);
        guardian_stop(&command->guardian);
        run_metrics_write(&metrics);
        run_metrics_finish(&metrics);
        _exit(status);
    }
    /* The release may take long. If the deadline passed during the release, the
     * guardian would kill processes that the command has left running, so the
     * guardian is stopped first. */
    guardian_stop(&command->guardian);
    return lock_set_release(locks, status, o->only_warn);
}

static int run(const struct run_options *o, struct command *command)
{
    struct lock_set locks = {.options = &o->options, .mask = command->mask};
    bool is_taken;
    int status;

    nested_find(&locks.nested, &o->options);
    status = run_export_names(&o->options);
    if (status != CLI_OK)
        return status;
    metrics.file = o->metrics;
    metrics.names = getenv("HOLDFAST_NAMES");
    is_taken = lock_set_acquire(&locks, &status);
    metrics.client = locks.client;
    if (is_taken)
        status = run_holding(&locks, o, command);
    if (locks.client)
        run_metrics_write(&metrics);
    run_metrics_finish(&metrics);
    lock_set_close(&locks);
    return status;
}

static int run_main(int argc, char **argv)
{
    struct run_options o = {.options = LOCK_OPTIONS_INIT(&cli_run)};
    struct command command = {.verb = &cli_run, .pid = -1};
    int status = run_options_parse(&o, argc, argv);

    if (status != CLI_OK)
        return status;
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, waitpid() would
                                 fail */
    /* Without this, SIGPIPE would end this process, and the command with it,
     * when a message is written to a pipe that no process reads. */
    command.on_pipe = signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, NULL, &command.mask);
    command.argv = o.argv;
    if (!o.options.label)
        o.options.label = o.argv[0];
    /* The first guardian is forked before the client is opened, so that it
     * inherits nothing of the library. */
    if (guardian_start(&command.guardian) < 0) {
        cli_say(&cli_run, "cannot fork: %s", strerror(errno));
        return CLI_OSERR;
    }
    terminal_open(&command.terminal);
    status = run(&o, &command);
    terminal_close(&command.terminal);
    guardian_stop(&command.guardian);
    if (server_wait_caught)
        cli_die_of(server_wait_caught);
    return status;
}

const struct cli_verb cli_run = {
    .name = "run",
    .summary = "acquires a lock, runs a command, releases the lock",
    .synopsis = "run [OPTION...] NAME [--] COMMAND [ARGUMENT...]\n"
                "run [OPTION...] NAME -c STRING\n"
                "run [OPTION...] -l NAME [-l NAME...] -- COMMAND "
                "[ARGUMENT...]",
    .about =
        "Acquires the lock NAME, or all locks of -l, runs the command, and "
        "releases them.",
    .flags = run_options_flags,
    .notes = run_options_notes,
    .operand = CLI_COMMAND,
    .main = run_main,
};
