/* holdfast run: takes the lock, runs the command, lets go. See run.h. */
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: holdfast run [OPTION...] NAME [--] COMMAND [ARGUMENT...]\n"
    "       holdfast run [OPTION...] NAME -c STRING\n"
    "\n"
    "Takes the lock NAME, runs the command, lets go.\n"
    "\n"
    "  -b, --backend URL      where the lock lives (else HOLDFAST_URL, else "
    "shm:)\n"
    "  -x, -e, --exclusive    write mode of a read-write lock\n"
    "  -s, --shared           read mode of a read-write lock\n"
    "                         (with none of these the lock is a mutex)\n"
    "  -n, --nonblock         fail at once when it is not free\n"
    "  -w, --wait DURATION    fail when it is not got in that time\n"
    "  -t, --ttl DURATION     how long it stays ours if we die or are cut off\n"
    "      --fair, --unfair   first come, first served; or whoever is "
    "quickest\n"
    "  -E, --conflict-exit-code CODE   exit status when not acquired (75)\n"
    "      --on-lost kill|warn  what to do when the lock is lost (kill)\n"
    "      --label TEXT       shown to those who ask who holds the lock\n"
    "  -c, --command STRING   run STRING by the shell\n"
    "\n"
    "Durations: 500ms 10s 2m 1h, or seconds. The command finds HOLDFAST_NAME "
    "and\nHOLDFAST_TOKEN in its environment.\n"
    "\n"
    "Exit status: the command's, 128+n if signal n ended it, 126 if it cannot "
    "be run,\n127 if it is not found; 75 not acquired, 79 lost while the "
    "command ran,\n69 the backend cannot be used, 64 usage, 71 this machine is "
    "out of something.\n";

struct options {
    const char *url, *name, *label, *shell_command;
    int64_t wait_ms, ttl_ms;
    enum hf_kind kind;
    enum hf_mode mode;
    enum hf_fairness fairness;
    int busy_exit;
    bool only_warn, help;
    char **argv;
    char *shell_argv[4];
};

enum { OPT_FAIR = 256, OPT_UNFAIR, OPT_ON_LOST, OPT_LABEL, OPT_HELP };

static const struct option long_options[] = {
    {"backend", required_argument, NULL, 'b'},
    {"exclusive", no_argument, NULL, 'x'},
    {"shared", no_argument, NULL, 's'},
    {"nonblock", no_argument, NULL, 'n'},
    {"nb", no_argument, NULL, 'n'},
    {"wait", required_argument, NULL, 'w'},
    {"timeout", required_argument, NULL, 'w'},
    {"ttl", required_argument, NULL, 't'},
    {"fair", no_argument, NULL, OPT_FAIR},
    {"unfair", no_argument, NULL, OPT_UNFAIR},
    {"conflict-exit-code", required_argument, NULL, 'E'},
    {"on-lost", required_argument, NULL, OPT_ON_LOST},
    {"label", required_argument, NULL, OPT_LABEL},
    {"command", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int take_duration(const char *text, int64_t least, int64_t *out)
{
    if (cli_duration(text, out) < 0 || *out < least)
        return cli_misuse(&cli_run,
                          "`%s' is no duration: 500ms, 10s, 2m, 1h or seconds",
                          text);
    return CLI_OK;
}

static int take_exit_code(struct options *o, const char *text)
{
    uint64_t number;

    if (cli_number(text, 0, 255, &number) < 0)
        return cli_misuse(&cli_run, "-E takes 0 to 255, not `%s'", text);
    o->busy_exit = (int)number;
    return CLI_OK;
}

static int take_on_lost(struct options *o, const char *text)
{
    o->only_warn = strcmp(text, "warn") == 0;
    if (!o->only_warn && strcmp(text, "kill") != 0)
        return cli_misuse(&cli_run, "--on-lost takes kill or warn, not `%s'",
                          text);
    return CLI_OK;
}

static int take_option(struct options *o, int option, char *value)
{
    switch (option) {
    case 'b':
        o->url = value;
        return CLI_OK;
    case 's':
    case 'x':
    case 'e':
        o->kind = HF_RWLOCK;
        o->mode = option == 's' ? HF_READ : HF_WRITE;
        return CLI_OK;
    case 'n':
        o->wait_ms = 0;
        return CLI_OK;
    case 'w':
        return take_duration(value, 0, &o->wait_ms);
    case 't':
        return take_duration(value, 1, &o->ttl_ms);
    case 'E':
        return take_exit_code(o, value);
    case 'c':
        o->shell_command = value;
        return CLI_OK;
    case OPT_FAIR:
    case OPT_UNFAIR:
        o->fairness = option == OPT_FAIR ? HF_FAIR : HF_UNFAIR;
        return CLI_OK;
    case OPT_ON_LOST:
        return take_on_lost(o, value);
    case OPT_LABEL:
        o->label = value;
        return CLI_OK;
    case OPT_HELP:
        o->help = true;
        return CLI_OK;
    default: /* getopt has said what is wrong */
        return cli_try_help(&cli_run);
    }
}

/* NAME and what follows it: [--] COMMAND..., or -c STRING as flock has it. */
static int take_operands(struct options *o, int argc, char **argv)
{
    if (argc < 1)
        return cli_misuse(&cli_run, "which lock? A NAME is missing");
    o->name = argv[0];
    argv++;
    argc--;
    if (argc == 2 && !o->shell_command &&
        (strcmp(argv[0], "-c") == 0 || strcmp(argv[0], "--command") == 0)) {
        o->shell_command = argv[1];
        argc = 0;
    }
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argv++;
        argc--;
    }
    if (!o->shell_command && argc == 0)
        return cli_misuse(&cli_run, "what is to be run? A COMMAND is missing");
    if (o->shell_command && argc > 0)
        return cli_misuse(&cli_run, "-c STRING and `%s': one of them", *argv);
    o->argv = argv;
    return CLI_OK;
}

static void use_shell(struct options *o)
{
    char *shell = getenv("SHELL");

    o->shell_argv[0] = shell && shell[0] ? shell : (char *)_PATH_BSHELL;
    o->shell_argv[1] = (char *)"-c";
    o->shell_argv[2] = (char *)o->shell_command;
    o->shell_argv[3] = NULL;
    o->argv = o->shell_argv;
}

static int parse(struct options *o, int argc, char **argv)
{
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = getopt_long(argc, argv, "+b:sxenw:t:E:c:", long_options,
                                 NULL)) != -1)
        status = take_option(o, option, optarg);
    if (status != CLI_OK || o->help)
        return status;
    status = take_operands(o, argc - optind, argv + optind);
    if (status == CLI_OK && o->shell_command)
        use_shell(o);
    return status;
}

static hf_cancel cancel = HF_CANCEL_INIT;
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
    hf_cancel_fire(&cancel);
}

static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
enum { ENDING = sizeof ending / sizeof *ending };

/* Waits for the lock; a signal that would have ended us ends the wait first,
 * so that we leave the queue. Afterwards the signals are blocked. */
static int acquire(hf_lock *lock, const struct options *o, hf_error *err)
{
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;
    struct sigaction catch = {.sa_handler = on_signal}, before[ENDING];
    sigset_t block;
    int rc;

    how.mode = o->mode;
    how.wait_ms = o->wait_ms;
    how.cancel = &cancel;
    watch_signals(&block);
    for (int i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &catch, NULL);
    }
    rc = hf_lock_acquire(lock, &how, err);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    return rc;
}

static int exit_status(const struct watch *watch)
{
    int status = watch->command->status;

    if (watch->lost && !watch->only_warn)
        return CLI_LOST;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int export_hold(const struct options *o, hf_lock *lock)
{
    char text[24];
    uint64_t token = 0;
    int rc = hf_lock_token(lock, &token);

    if (rc != HF_OK)
        return cli_failed(&cli_run, o->name, rc, NULL);
    snprintf(text, sizeof text, "%llu", (unsigned long long)token);
    if (setenv("HOLDFAST_NAME", o->name, 1) < 0 ||
        setenv("HOLDFAST_TOKEN", text, 1) < 0) {
        cli_say(&cli_run, "%s", strerror(errno));
        return CLI_OSERR;
    }
    return CLI_OK;
}

/* The command ended, and the release says that the hold had before. */
static int let_go(hf_lock *lock, const struct options *o, int status)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_release(lock, &err);

    if (rc == HF_OK)
        return status;
    cli_failed(&cli_run, o->name, rc, &err);
    return rc == HF_ELOST && !o->only_warn ? CLI_LOST : status;
}

static int run_holding(hf_lock *lock, const struct options *o,
                       struct command *command)
{
    struct watch watch = {.command = command,
                          .lock = lock,
                          .name = o->name,
                          .only_warn = o->only_warn,
                          .signals = -1,
                          .timer = -1};
    int status = export_hold(o, lock);

    if (status == CLI_OK)
        status = watch_init(&watch);
    if (status == CLI_OK)
        status = command_start(command);
    if (status == CLI_OK) {
        watch_run(&watch);
        status = exit_status(&watch);
    }
    watch_fini(&watch);
    if (watch.lost) {
        /* There is perhaps nothing to give back and nobody to ask: do not keep
         * the caller waiting for answers. */
        hf_lock_release_nowait(lock, NULL);
        guardian_stop(&command->guardian);
        _exit(status);
    }
    return let_go(lock, o, status);
}

static int run_client(hf_client *client, const struct options *o,
                      struct command *command)
{
    hf_lock_options lock_options = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock = NULL;
    int rc, status;

    lock_options.kind = o->kind;
    lock_options.fairness = o->fairness;
    rc = hf_lock_new(client, o->name, HF_CSTRING, &lock_options, &lock, &err);
    if (rc != HF_OK)
        return cli_failed(&cli_run, o->name, rc, &err);
    rc = acquire(lock, o, &err);
    if (rc != HF_OK) {
        status = caught ? CLI_BUSY : cli_failed(&cli_run, o->name, rc, &err);
        if (status == CLI_BUSY)
            status = o->busy_exit;
    } else if (caught) {
        status = let_go(lock, o, CLI_BUSY);
    } else {
        status = run_holding(lock, o, command);
    }
    hf_lock_free(lock);
    return status;
}

/* As if we had not caught it. */
static void die_of(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int run(const struct options *o, struct command *command)
{
    hf_client_options client_options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    int rc, status;

    client_options.ttl_ms = o->ttl_ms;
    client_options.label = o->label ? o->label : o->argv[0];
    rc = hf_open(cli_url(o->url), &client_options, &client, &err);
    if (rc != HF_OK)
        return cli_failed(&cli_run, "cannot open the backend", rc, &err);
    status = run_client(client, o, command);
    hf_close(client);
    return status;
}

static int run_main(int argc, char **argv)
{
    struct options o = {.wait_ms = HF_FOREVER,
                        .kind = HF_MUTEX,
                        .mode = HF_WRITE,
                        .busy_exit = CLI_BUSY};
    struct command command = {.pid = -1};
    int status = parse(&o, argc, argv);

    if (status != CLI_OK)
        return status;
    if (o.help)
        return cli_help(&cli_run);
    signal(SIGCHLD, SIG_DFL); /* if it was ignored we could not wait */
    pthread_sigmask(SIG_SETMASK, NULL, &command.mask);
    command.argv = o.argv;
    /* Now, so that it has nothing of the library in it. */
    if (guardian_start(&command.guardian) < 0) {
        cli_say(&cli_run, "cannot fork: %s", strerror(errno));
        return CLI_OSERR;
    }
    terminal_open(&command.terminal);
    status = run(&o, &command);
    terminal_close(&command.terminal);
    guardian_stop(&command.guardian);
    if (caught)
        die_of(caught);
    return status;
}

const struct cli_verb cli_run = {"run", "takes a lock, runs a command, lets go",
                                 usage, run_main};
