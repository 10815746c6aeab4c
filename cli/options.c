/* What `holdfast run` was told to do. */
#include "backends/registry.h"
#include "run.h"
#include "text.h"

#include <paths.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char run_usage[] =
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
    "  -w, --wait DURATION    fail when it is not got in that time, "
    "connecting included\n"
    "  -t, --ttl DURATION     how long it stays ours if we die or are cut off\n"
    "      --fair, --unfair   first come, first served; or whoever is "
    "quickest\n"
    "  -E, --conflict-exit-code CODE   exit status when not acquired (75)\n"
    "  -q, --quiet            say nothing when not acquired or while waiting\n"
    "      --on-lost kill|warn  what to do when the lock is lost (kill)\n"
    "      --label TEXT       shown to those who ask who holds the lock\n"
    "  -c, --command STRING   run STRING by the shell\n"
    "  -h, --help             this\n"
    "\n"
    "Durations: 500ms 10s 2m 1h 1d, or seconds; fractions as in 0.5. The "
    "command finds\nHOLDFAST_NAME and HOLDFAST_TOKEN in its environment.\n"
    "\n"
    "Without -n it also waits for a server that is down or starting, and says "
    "so once.\n"
    "\n"
    "In shm: the lock is for this user on this machine. For several users:\n"
    "  -b 'shm:///run/app/locks?mode=0660&group=app'\n"
    "\n"
    "Exit status: the command's, 128+n if signal n ended it, 126 if it cannot "
    "be run,\n127 if it is not found; 75 not acquired, 79 lost while the "
    "command ran,\n69 the backend cannot be used, 77 it refused our "
    "credentials, 64 usage,\n71 this machine is out of something.\n";

enum { OPT_FAIR = 256, OPT_UNFAIR, OPT_ON_LOST, OPT_LABEL };

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
    {"quiet", no_argument, NULL, 'q'},
    {"on-lost", required_argument, NULL, OPT_ON_LOST},
    {"label", required_argument, NULL, OPT_LABEL},
    {"command", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int take_wait(struct run_options *o, const char *text)
{
    if (hf__parse_ms(text, &o->wait_ms) == 0)
        return CLI_OK;
    return cli_misuse(&cli_run,
                      "-w takes a duration, as in 500ms, 10s, 2m, 1h or 0.5 "
                      "(seconds), not `%s'",
                      text);
}

static int take_ttl(struct run_options *o, const char *text)
{
    if (hf__parse_ms(text, &o->ttl_ms) == 0 && o->ttl_ms >= HF_LEASE_MIN_MS)
        return CLI_OK;
    return cli_misuse(&cli_run,
                      "-t takes a duration of at least %dms, as in 10s or 2m, "
                      "not `%s'",
                      HF_LEASE_MIN_MS, text);
}

static int take_exit_code(struct run_options *o, const char *text)
{
    uint64_t number;

    if (cli_number(text, 0, 255, &number) < 0)
        return cli_misuse(&cli_run, "-E takes 0 to 255, not `%s'", text);
    o->busy_exit = (int)number;
    return CLI_OK;
}

static int take_on_lost(struct run_options *o, const char *text)
{
    o->only_warn = strcmp(text, "warn") == 0;
    if (!o->only_warn && strcmp(text, "kill") != 0)
        return cli_misuse(&cli_run, "--on-lost takes kill or warn, not `%s'",
                          text);
    return CLI_OK;
}

static int take_option(struct run_options *o, int option, char *value)
{
    switch (option) {
    case 'b':
        o->url = value;
        return CLI_OK;
    case 's':
        o->shared = true;
        return CLI_OK;
    case 'x':
    case 'e':
        o->exclusive = true;
        return CLI_OK;
    case 'n':
        o->nonblock = true;
        return CLI_OK;
    case 'w':
        return take_wait(o, value);
    case 't':
        return take_ttl(o, value);
    case 'E':
        return take_exit_code(o, value);
    case 'q':
        o->quiet = true;
        return CLI_OK;
    case 'c':
        o->shell_command = value;
        return CLI_OK;
    case OPT_FAIR:
        o->fair = true;
        return CLI_OK;
    case OPT_UNFAIR:
        o->unfair = true;
        return CLI_OK;
    case OPT_ON_LOST:
        return take_on_lost(o, value);
    case OPT_LABEL:
        o->label = value;
        return CLI_OK;
    case 'h':
        o->help = true;
        return CLI_OK;
    default: /* cli_option has said what is wrong */
        return CLI_USAGE;
    }
}

/* What belongs together, and what does not. */
static int take_together(struct run_options *o)
{
    if (o->shared && o->exclusive)
        return cli_misuse(&cli_run,
                          "-s is shared and -x exclusive: one of them");
    if (o->fair && o->unfair)
        return cli_misuse(&cli_run, "--fair and --unfair: one of them");
    if (o->nonblock && o->wait_ms > 0)
        return cli_misuse(&cli_run,
                          "-n does not wait and -w does: one of them");
    if (o->nonblock)
        o->wait_ms = 0;
    if (o->shared || o->exclusive)
        o->kind = HF_RWLOCK;
    o->mode = o->shared ? HF_READ : HF_WRITE;
    if (o->fair || o->unfair)
        o->fairness = o->fair ? HF_FAIR : HF_UNFAIR;
    return CLI_OK;
}

/* A lock may be called like any other URL: it may guard what is there. */
static bool is_our_url(const char *name)
{
    static const char *const begins[] = {HF__SCHEMES};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncasecmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static bool is_shell_option(const char *word)
{
    return strcmp(word, "-c") == 0 || strcmp(word, "--command") == 0;
}

/* NAME and what follows it: [--] COMMAND..., or -c STRING as flock has it. */
static int take_operands(struct run_options *o, int argc, char **argv)
{
    if (argc < 1)
        return cli_misuse(&cli_run, "which lock? A NAME is missing");
    o->name = argv[0];
    if (!o->url && is_our_url(o->name)) /* and not quoted: it has a password */
        return cli_misuse(&cli_run, "the NAME is a URL; is a -b missing?");
    argv++;
    argc--;
    if (argc > 0 && !o->shell_command && is_shell_option(argv[0])) {
        if (argc != 2)
            return cli_misuse(&cli_run, "%s takes one STRING", argv[0]);
        o->shell_command = argv[1];
        argc = 0;
    }
    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argv++;
        argc--;
    } else if (argc > 0 && argv[0][0] == '-') {
        return cli_misuse(&cli_run,
                          "`%s' after the NAME: options go before it, and a "
                          "COMMAND that begins with - goes after --",
                          argv[0]);
    }
    if (!o->shell_command && argc == 0)
        return cli_misuse(&cli_run, "what is to be run? A COMMAND is missing");
    if (o->shell_command && argc > 0)
        return cli_misuse(&cli_run, "-c STRING and `%s': one of them", *argv);
    o->argv = argv;
    return CLI_OK;
}

static void use_shell(struct run_options *o)
{
    char *shell = getenv("SHELL");

    o->shell_argv[0] = shell && shell[0] ? shell : (char *)_PATH_BSHELL;
    o->shell_argv[1] = (char *)"-c";
    o->shell_argv[2] = (char *)o->shell_command;
    o->shell_argv[3] = NULL;
    o->argv = o->shell_argv;
}

int run_parse(struct run_options *o, int argc, char **argv)
{
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_option(&cli_run, argc, argv, "+:b:sxenw:t:E:qc:h",
                                long_options)) != -1)
        status = take_option(o, option, optarg);
    if (status != CLI_OK || o->help)
        return status;
    status = take_together(o);
    if (status != CLI_OK)
        return status;
    status = take_operands(o, argc - optind, argv + optind);
    if (status == CLI_OK && o->shell_command)
        use_shell(o);
    return status;
}
