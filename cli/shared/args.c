#include "args.h"

#include "base/text.h"
#include "exit_code.h"
#include "message.h"
#include "screen.h"

#include <errno.h>
#include <holdfast.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS_MAX = 48, HELP_COLUMN = 28, HELP_WIDTH = 80 };

struct cli_hint cli_similar(const char *typed, const char *before,
                            const char *const *words, size_t n)
{
    struct cli_hint hint = {""};
    unsigned best = UINT_MAX;

    for (size_t i = 0; i < n; i++) {
        unsigned mistyped = hf__mistyped(typed, words[i], strlen(words[i]));

        if (mistyped < best) {
            best = mistyped;
            snprintf(hint.text, sizeof hint.text, "; did you mean %s%s?",
                     before, words[i]);
        }
    }
    return hint;
}

/* Prints that there is no such option, and suggests a similar option. `word'
 * begins with its dashes, and a value may follow. */
static void args_unknown_option(const struct cli_verb *verb, const char *word,
                                const struct option *options)
{
    const char *names[FLAGS_MAX];
    char typed[64];
    size_t n = 0;

    for (; n < FLAGS_MAX && options[n].name; n++)
        names[n] = options[n].name;
    word += strspn(word, "-");
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    cli_misused(verb, "no option is called `--%s'%s", typed,
                cli_similar(typed, "--", names, n).text);
}

static void args_bad_option(const struct cli_verb *verb, int answer,
                            const char *word, const struct option *options)
{
    if (answer == ':') {
        cli_misused(verb, "`%s' needs a value", word);
    } else if (optopt == 0) {
        args_unknown_option(verb, word, options);
    } else {
        while (options->name && options->val != optopt)
            options++;
        if (options->name)
            cli_misused(verb, "--%s takes no value", options->name);
        else
            cli_misused(verb, "no option is called `-%c'", optopt);
    }
}

int cli_option(const struct cli_verb *verb, int argc, char **argv,
               const char *brief, const struct option *options)
{
    int answer;

    opterr = 0; /* its messages would quote the whole word */
    answer = getopt_long(argc, argv, brief, options, NULL);
    if (answer != ':' && answer != '?')
        return answer;
    args_bad_option(verb, answer, argv[optind - 1], options);
    return '?';
}

/* The flags of the verb, and the flags that all verbs have, in the form of
 * getopt_long(). */
struct table {
    struct option options[FLAGS_MAX + 1];
    char brief[2 * FLAGS_MAX + 3];
};

const struct cli_flag cli_flags_of_all[] = {
    {'h', "help", NULL, "print this"},
    {'V', "version", NULL, "print the version"},
    CLI_FLAG_END,
};

static void args_add_flags(struct table *t, const struct cli_flag *flags)
{
    size_t n = 0, len = strlen(t->brief);

    while (t->options[n].name)
        n++;
    for (; flags->id; flags++) {
        if (flags->name && n < FLAGS_MAX)
            t->options[n++] = (struct option){
                flags->name, flags->value ? required_argument : no_argument,
                NULL, flags->id};
        if (flags->id < 256 && !strchr(t->brief, flags->id)) {
            t->brief[len++] = (char)flags->id;
            if (flags->value)
                t->brief[len++] = ':';
        }
    }
}

int cli_flag(const struct cli_verb *verb, int argc, char **argv)
{
    struct table t = {.brief = ":"};
    int id;

    if (verb->operand == CLI_COMMAND)
        memcpy(t.brief, "+:", sizeof "+:");
    args_add_flags(&t, verb->flags);
    args_add_flags(&t, cli_flags_of_all);
    id = cli_option(verb, argc, argv, t.brief, t.options);
    if (id == 'V')
        cli_print_version();
    if (id == 'h') {
        cli_help(verb);
        exit(cli_finish(CLI_OK));
    }
    return id;
}

int cli_few_flags(const struct cli_verb *verb, int argc, char **argv,
                  const char **url, bool *json)
{
    int option;

    while ((option = cli_flag(verb, argc, argv)) != -1) {
        if (option == 'b')
            *url = optarg;
        else if (option == CLI_JSON && json)
            *json = true;
        else
            return CLI_USAGE;
    }
    return CLI_OK;
}

int cli_duration(const struct cli_verb *verb, const char *option,
                 const char *text, int64_t least_ms, int64_t *ms)
{
    if (hf__parse_ms(text, ms) != 0)
        return cli_misuse(verb,
                          "%s takes a duration of at most a hundred years, as "
                          "in 500ms, 10s, 2m, 1h or 0.5 (seconds), not `%s'",
                          option, text);
    if (*ms < least_ms)
        return cli_misuse(verb,
                          "%s takes a duration of at least %lldms, not "
                          "`%s'",
                          option, (long long)least_ms, text);
    return CLI_OK;
}

/* Prints "  -b, --backend URL  where ...". */
static void args_help_flag(const struct cli_flag *flag)
{
    bool brief = flag->id < 256;
    int column = printf(brief ? "  -%c" : "    ", flag->id);

    if (flag->name)
        column += printf("%s--%s", brief ? ", " : "  ", flag->name);
    if (flag->value)
        column += printf(" %s", flag->value);
    if (column + 2 > HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", HELP_COLUMN - column, "");
    cli_wrap(stdout, HELP_COLUMN, HELP_WIDTH, flag->help);
}

static void args_help_flags(const struct cli_flag *flags)
{
    for (; flags->id; flags++)
        if (flags->help)
            args_help_flag(flags);
}

void cli_help(const struct cli_verb *verb)
{
    const char *line = verb->synopsis, *before = "usage:";

    while (*line) {
        size_t len = strcspn(line, "\n");

        printf("%s holdfast %.*s\n", before, (int)len, line);
        before = "      ";
        line += len + (line[len] != '\0');
    }
    putchar('\n');
    cli_wrap(stdout, 0, HELP_WIDTH, verb->about);
    putchar('\n');
    args_help_flags(verb->flags);
    args_help_flags(cli_flags_of_all);
    if (verb->notes)
        printf("\n%s", verb->notes);
}

void cli_print_version(void)
{
    printf("holdfast %s\n", hf_version());
    exit(cli_finish(CLI_OK));
}

int cli_finish(int status)
{
    static bool said;
    bool is_lost = fflush(stdout) != 0;

    if (!is_lost && !ferror(stdout))
        return status;
    if (!said)
        cli_say(NULL, "standard output: %s",
                is_lost ? strerror(errno) : "a part could not be written");
    said = true;
    return status == CLI_OK ? CLI_FAILED : status;
}
