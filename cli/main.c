/* The command: finds the verb, and prints help. */
#include "shared/args.h"
#include "shared/complete.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/verb.h"
#include "verbs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* In the order of `holdfast help`; ends with NULL. */
static const struct cli_verb *const verbs[] = {
    &cli_run,   &cli_hold,  &cli_ls,     &cli_show,  &cli_break, &cli_ask,
    &cli_watch, &cli_latch, &cli_doctor, &cli_bench, &cli_lab,   NULL};

static const struct cli_verb *main_find(const char *name)
{
    for (size_t i = 0; verbs[i]; i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    }
    return NULL;
}

/* Returns holdfast's verb for a word that a user of other programs may try,
 * such as "ls" for "list", or NULL. */
static const char *main_synonym(const char *name)
{
    static const char *const words[][2] = {
        {"list", "ls"},           {"lock", "run"},      {"exec", "run"},
        {"status", "show"},       {"inspect", "show"},  {"info", "show"},
        {"unlock", "break"},      {"release", "break"}, {"check", "doctor"},
        {"version", "--version"},
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    return NULL;
}

static int main_no_verb(const char *what, const char *name)
{
    const char *other = main_synonym(name);
    const char *names[sizeof verbs / sizeof *verbs] = {"help"};
    size_t n = 1;

    for (; verbs[n - 1]; n++)
        names[n] = verbs[n - 1]->name;
    if (name[0] == '-')
        return cli_misuse(NULL,
                          "`%s' before the verb: options follow it, as "
                          "in holdfast ls -b URL",
                          name);
    if (other)
        return cli_misuse(NULL, "%s `%s'; did you mean holdfast %s?", what,
                          name, other);
    return cli_misuse(NULL, "%s `%s'%s", what, name,
                      cli_similar(name, "holdfast ", names, n).text);
}

static void main_overview(FILE *out)
{
    fputs("usage: holdfast VERB [OPTION...] [ARGUMENT...]\n\n", out);
    for (size_t i = 0; verbs[i]; i++)
        fprintf(out, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs(
        "  help     prints this, or the help of a verb: holdfast help VERB\n\n"
        "-b URL, or HOLDFAST_URL in the environment, says where the locks "
        "are:\n"
        "\n"
        "  shm:                        the default: for this user on this "
        "machine\n"
        "  shm:///dir                  shared memory in a directory of your "
        "choice\n"
        "  redis://host:6379/0         a Redis server (rediss:// with TLS,\n"
        "                              redis+unix:///path by its socket)\n"
        "  redlock://h1,h2,h3,h4,h5    a majority of independent Redis "
        "servers\n"
        "  zk://h1,h2,h3/root          ZooKeeper\n"
        "  etcd://h1,h2,h3/path        etcd (etcds:// with TLS)\n"
        "  mysql://user@host/database  MySQL or MariaDB\n\n"
        "Options follow a question mark. These are locks for all users of a "
        "group:\n"
        "  holdfast run -b 'shm:///run/app/locks?mode=0660&group=app' NAME "
        "COMMAND\n",
        out);
}

/* help VERB [SCENARIO] is the same as VERB [SCENARIO] --help. */
static int main_help(int argc, char **argv)
{
    char *question[] = {NULL, NULL, NULL, NULL};
    const struct cli_verb *verb;
    int n = 0;

    if (argc < 2 ||
        (argc == 2 && (strcmp(argv[1], "help") == 0 || argv[1][0] == '-'))) {
        main_overview(stdout);
        return CLI_OK;
    }
    verb = main_find(argv[1]);
    if (verb && verb != &cli_lab && argc > 2)
        return cli_misuse(NULL, "`%s' after %s: help takes one VERB", argv[2],
                          argv[1]);
    if (!verb || argc > 3)
        return main_no_verb("there is no help on", argv[argc - 1]);
    for (; n < argc - 1; n++)
        question[n] = argv[n + 1];
    question[n++] = (char *)"--help";
    return verb->main(n, question);
}

/* Opens /dev/null for standard descriptors that are closed. Otherwise a file
 * that is opened later would get the number of a standard descriptor, and
 * messages would be written to that file. In a command that holdfast starts,
 * these descriptors are closed again. */
static void main_fill_standard_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
    }
}

int main(int argc, char **argv)
{
    const struct cli_verb *verb;

    main_fill_standard_descriptors();
    if (argc < 2) {
        main_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        cli_print_version();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return cli_finish(main_help(argc - 1, argv + 1));
    if (strcmp(argv[1], "__complete") == 0 && argc > 2)
        return cli_finish(cli_complete_all(verbs, argc - 3, argv + 3));
    verb = main_find(argv[1]);
    if (!verb)
        return main_no_verb("no verb is called", argv[1]);
    return cli_finish(verb->main(argc - 1, argv + 1));
}
