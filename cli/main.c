/* The command: finds the verb, and helps. */
#include "cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const struct cli_verb *const verbs[] = {&cli_run, &cli_bench, &cli_lab};
static const size_t verbs_len = sizeof verbs / sizeof *verbs;

static const struct cli_verb *find(const char *name)
{
    for (size_t i = 0; i < verbs_len; i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    }
    return NULL;
}

static void overview(FILE *out)
{
    fputs("usage: holdfast VERB [OPTION...] [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < verbs_len; i++)
        fprintf(out, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("  help     this, or what VERB does: holdfast help VERB\n\n"
          "Locks live where -b URL or HOLDFAST_URL says, else in shared "
          "memory,\nfor this user on this machine. URLs: shm: shm:///dir "
          "redis://host:6379/0\nrediss://host redis+unix:///path "
          "redlock://h1,h2,h3,h4,h5\nzk://h1,h2,h3/root etcd://h1,h2,h3/path "
          "mysql://user@host/database;\nfor several users of this machine "
          "'shm:///run/app/locks?mode=0660&group=app'\n",
          out);
}

/* help VERB [SCENARIO] is VERB [SCENARIO] --help. */
static int help(int argc, char **argv)
{
    char *question[] = {NULL, NULL, NULL, NULL};
    const struct cli_verb *verb;
    int n = 0;

    if (argc < 2 || (argc == 2 && strcmp(argv[1], "help") == 0)) {
        overview(stdout);
        return CLI_OK;
    }
    verb = find(argv[1]);
    if (!verb || argc > 3)
        return cli_misuse(NULL, "no help on `%s'", argv[argc - 1]);
    for (; n < argc - 1; n++)
        question[n] = argv[n + 1];
    question[n++] = (char *)"--help";
    return verb->main(n, question);
}

static int finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("holdfast: standard output");
        return status == CLI_OK ? CLI_FAILED : status;
    }
    return status;
}

/* So that no descriptor of ours becomes one that is printed to. A command that
 * we start still finds closed what was closed. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return;
    }
}

int main(int argc, char **argv)
{
    const struct cli_verb *verb;

    fill_standard_descriptors();
    if (argc < 2) {
        overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("holdfast %s\n", hf_version());
        return finish(CLI_OK);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return finish(help(argc - 1, argv + 1));
    verb = find(argv[1]);
    if (!verb)
        return cli_misuse(NULL, "no verb is called `%s'", argv[1]);
    return finish(verb->main(argc - 1, argv + 1));
}
