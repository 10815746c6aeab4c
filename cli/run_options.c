#include "run_options.h"

#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"

#include <getopt.h>
#include <paths.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPT_ON_LOST = LOCK_OPTIONS_OTHERS, OPT_METRICS, OPT_VERBOSE };

const struct cli_flag run_options_flags[] = {
    LOCK_OPTIONS_FLAGS,
    {OPT_ON_LOST, "on-lost", "kill|warn",
     "what to do if the lock is lost (kill)"},
    {OPT_VERBOSE, "verbose", NULL, "print how long it waited, and COMMAND"},
    {OPT_METRICS, "metrics", "FILE", "write metrics for Prometheus to FILE"},
    {'c', "command", "STRING", "run STRING with the shell"},
    /* These are options of flock(1): each is accepted, or refused with a
     * reason. */
    {'o', "close", NULL, NULL},
    {'F', "no-fork", NULL, NULL},
    {'u', "unlock", NULL, NULL},
    CLI_FLAG_END,
};

const char run_options_notes[] =
    "Durations: 500ms 10s 2m 1h 1d, or seconds, as in 0.5. The command finds\n"
    "HOLDFAST_NAME and HOLDFAST_TOKEN in its environment.\n"
    "\n"
    "  holdfast run nightly -- ./backup     for this user on this machine\n"
    "  holdfast run -n nightly -- ./backup  or not at all: exit status 75\n"
    "  holdfast run -b redis://db1 nightly -- ./backup         for all "
    "machines\n"
    "  holdfast run -b 'shm:///run/app/locks?mode=0660&group=app' nightly -- "
    "./backup\n"
    "                                       for the users of a group\n"
    "\n"
    "Exit status: the command's, 128+n if signal n ended it, 126 if it cannot "
    "be run,\n127 if it is not found; 75 not acquired, 79 lost, 69 the backend "
    "cannot be used,\n77 authentication or authorization failed, 64 usage, "
    "71 no memory or processes.\n";

static int run_options_take_on_lost(struct run_options *o, const char *text)
{
    static const char *const words[] = {"kill", "warn"};

    o->only_warn = strcmp(text, "warn") == 0;
    if (!o->only_warn && strcmp(text, "kill") != 0)
        return cli_misuse(o->options.verb,
                          "--on-lost takes kill or warn, not `%s'%s", text,
                          cli_similar(text, "", words, 2).text);
    return CLI_OK;
}

static int take_option(struct run_options *o, int option, char *value)
{
    switch (option) {
    case 'c':
        o->shell_command = value;
        return CLI_OK;
    case 'o': /* the command never inherits holdfast's descriptors */
        return CLI_OK;
    case 'F':
        return cli_misuse(o->options.verb,
                          "-F: holdfast cannot become the command, because it "
                          "has to renew the lock while the command runs");
    case 'u':
        return cli_misuse(o->options.verb,
                          "-u: there is no lock to release; `holdfast hold' "
                          "keeps one and releases it when told to");
    case OPT_ON_LOST:
        return run_options_take_on_lost(o, value);
    case OPT_METRICS:
        o->metrics = value;
        return CLI_OK;
    case OPT_VERBOSE:
        o->verbose = true;
        return CLI_OK;
    default:
        return lock_options_take(&o->options, option, value);
    }
}

static bool is_shell_option(const char *word)
{
    return strcmp(word, "-c") == 0 || strcmp(word, "--command") == 0;
}

static int run_options_take_command(struct run_options *o, int argc,
                                    char **argv)
{
    if (!o->shell_command && argc == 0)
        return cli_misuse(o->options.verb,
                          "what should it run? A COMMAND is missing");
    if (o->shell_command && argc > 0)
        return cli_misuse(o->options.verb,
                          "-c STRING and `%s'; give only one of them", *argv);
    o->argv = argv;
    return CLI_OK;
}

/* Parses NAME and what follows it: [--] COMMAND..., or -c STRING as in
 * flock(1). */
static int run_options_take_operands(struct run_options *o, int argc,
                                     char **argv)
{
    int status;

    if (o->options.len > 0) /* the names were given by -l */
        return run_options_take_command(o, argc, argv);
    if (argc < 1)
        return cli_misuse(o->options.verb, "which lock? A NAME is missing");
    status = lock_options_name(&o->options, argv[0]);
    if (status != CLI_OK)
        return status;
    argv++;
    argc--;
    if (argc > 0 && !o->shell_command && is_shell_option(argv[0])) {
        if (argc != 2)
            return cli_misuse(o->options.verb, "%s takes one STRING", argv[0]);
        o->shell_command = argv[1];
        argc = 0;
    }
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argv++;
        argc--;
    } else if (argc > 0 && argv[0][0] == '-') {
        return cli_misuse(o->options.verb,
                          "`%s' after the NAME: options go before it, and a "
                          "COMMAND that begins with - goes after --",
                          argv[0]);
    }
    return run_options_take_command(o, argc, argv);
}

static void run_options_use_shell(struct run_options *o)
{
    char *shell = getenv("SHELL");

    o->shell_argv[0] = shell && shell[0] ? shell : (char *)_PATH_BSHELL;
    o->shell_argv[1] = (char *)"-c";
    o->shell_argv[2] = (char *)o->shell_command;
    o->shell_argv[3] = NULL;
    o->argv = o->shell_argv;
}

/* Checks the FILE of --metrics. The file is replaced, so it must not be a
 * device, a pipe or a link. */
static int run_options_check_metrics(const struct run_options *o)
{
    const char *file = o->metrics;
    struct stat st;

    if (!file[0] || strcmp(file, "-") == 0)
        return cli_misuse(o->options.verb,
                          "--metrics takes the name of a file");
    if (lstat(file, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return cli_misuse(o->options.verb,
                          "--metrics replaces a regular file, and `%s' is "
                          "another kind of file",
                          file);
    return CLI_OK;
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_flag(o->options.verb, argc, argv)) != -1)
        status = take_option(o, option, optarg);
    if (status == CLI_OK)
        status = run_options_take_operands(o, argc - optind, argv + optind);
    if (status == CLI_OK)
        status = lock_options_check(&o->options);
    if (status == CLI_OK && o->verbose && o->options.quiet)
        status = cli_misuse(o->options.verb,
                            "-q and --verbose; give only one of them");
    if (status == CLI_OK && o->metrics)
        status = run_options_check_metrics(o);
    if (status == CLI_OK && o->shell_command)
        run_options_use_shell(o);
    return status;
}
