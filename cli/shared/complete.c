/*
 * Completion of a command line in a shell: `holdfast __complete -- WORD...',
 * which the files in completions/ call. The words are those after `holdfast',
 * up to the one to be completed, which may be empty. The candidates for it are
 * printed as records that end with NUL bytes. They begin with a heading:
 *
 *     words | part      `part' means that no blank follows a candidate
 *     WORD DESCRIPTION  two records for each candidate
 *
 * Instead of candidates, one record may be printed:
 *
 *     files N           names of files, after the first N bytes of the word
 *     command N         word N, counted from 0, is the first of a command
 *
 * If there is nothing to offer, nothing is printed. Verbs and options come from
 * the tables of the verbs, the names of locks from the server.
 */
#include "complete.h"

#include "args.h"
#include "exit_code.h"
#include "schemes.h"
#include "values.h"

#include <holdfast.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* How long a shell waits for a server, unless HOLDFAST_COMPLETE_MS is set. */
enum { WAIT_MS = 300, WAIT_MAX_MS = 3600000 };

/* The word to be completed, and what has been printed about it. */
struct completion {
    const char *word;
    size_t fixed; /* how many bytes precede the value, as in "--kind=" */
    const char *url;
    bool has_heading;
};

static const char *complete_value_of(const struct completion *c)
{
    return c->word + c->fixed;
}

static bool complete_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void complete_record(const char *text)
{
    fwrite(text, 1, strlen(text) + 1, stdout);
}

static void complete_offer(struct completion *c, const char *heading,
                           const char *value, const char *description)
{
    if (!complete_begins(value, complete_value_of(c)))
        return;
    if (!c->has_heading)
        complete_record(heading);
    c->has_heading = true;
    fwrite(c->word, 1, c->fixed, stdout);
    complete_record(value);
    complete_record(description ? description : "");
}

static void complete_give_up(int number)
{
    (void)number;
    _exit(CLI_OK); /* drops output that is not flushed yet */
}

/* Sets a time limit that ends the process, and returns it in milliseconds. */
static int64_t complete_limit_the_time(void)
{
    const char *text = getenv("HOLDFAST_COMPLETE_MS");
    uint64_t ms = WAIT_MS;
    struct itimerval time = {0};

    if (text && cli_number(text, 1, WAIT_MAX_MS, &ms) < 0)
        ms = WAIT_MS;
    time.it_value.tv_sec = (time_t)(ms / 1000);
    time.it_value.tv_usec = (suseconds_t)(ms % 1000 * 1000);
    signal(SIGALRM, complete_give_up);
    setitimer(ITIMER_REAL, &time, NULL);
    return (int64_t)ms;
}

static bool complete_is_latch(hf_client *client, const struct hf_name *name)
{
    hf_info *info = NULL;
    bool is =
        hf_inspect(client, name->bytes, name->len, &info, NULL) == HF_OK &&
        info->kind == HF_LATCH;

    hf_info_free(info);
    return is;
}

/* Returns whether the verb accepts this name. Names with a NUL byte are never
 * accepted. Only the server knows the kind of a name, and with many names the
 * requests would delay the completion noticeably. After until_ns, names are
 * therefore accepted without a request, unless the verb wants a latch. */
static bool complete_is_fit(hf_client *client, const struct hf_name *name,
                            enum cli_operand wanted, int64_t until_ns)
{
    if (strlen(name->bytes) != name->len)
        return false;
    if (wanted == CLI_LATCH_NAME)
        return complete_is_latch(client, name);
    return wanted == CLI_NAME || cli_now_ns(CLOCK_MONOTONIC) > until_ns ||
           !complete_is_latch(client, name);
}

static void complete_offer_names(struct completion *c, enum cli_operand wanted)
{
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    hf_client *client = NULL;
    hf_names *names = NULL;
    int64_t until_ns = cli_now_ns(CLOCK_MONOTONIC);

    options.flags = HF_OPEN_EXISTING; /* completion must not create anything */
    options.open_timeout_ms = complete_limit_the_time();
    until_ns += options.open_timeout_ms * 1000000 / 2;
    if (hf_open(cli_url(c->url), &options, &client, NULL) == HF_OK &&
        hf_list(client, complete_value_of(c), &names, NULL) == HF_OK) {
        for (size_t i = 0; i < names->len; i++)
            if (complete_is_fit(client, &names->names[i], wanted, until_ns))
                complete_offer(c, "words", names->names[i].bytes, NULL);
        hf_names_free(names);
    }
    fflush(stdout);
    hf_close(client);
}

/* Offers the words of a list such as "kill|warn". */
static void complete_offer_alternatives(struct completion *c, const char *list)
{
    char word[64];

    for (size_t len; *list; list += len + (list[len] == '|')) {
        len = strcspn(list, "|");
        snprintf(word, sizeof word, "%.*s", (int)len, list);
        complete_offer(c, "words", word, NULL);
    }
}

/* Offers the options of a URL's backend. They are listed in the error text of
 * hf_open() for an unknown option; hf_open() returns that error before it
 * connects. */
static void complete_offer_url_options(struct completion *c, size_t question)
{
    static const char unknown[] = "?.=1", there[] = " has ";
    char *url = malloc(question + sizeof unknown), *list, *next, option[64];
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;

    if (!url)
        return;
    memcpy(url, complete_value_of(c), question);
    memcpy(url + question, unknown, sizeof unknown);
    if (hf_open(url, NULL, &client, &err) == HF_EINVAL &&
        complete_begins(err.text, "unknown option \".\"") &&
        (list = strstr(err.text, there))) {
        c->fixed += question + 1;
        while ((next = strchr(complete_value_of(c), '&')))
            c->fixed = (size_t)(next + 1 - c->word);
        list += strlen(there);
        while ((next = strsep(&list, ", "))) {
            snprintf(option, sizeof option, "%s=", next);
            if (*next)
                complete_offer(c, "part", option, NULL);
        }
    }
    hf_close(client);
    free(url);
}

static void complete_offer_urls(struct completion *c)
{
    static const char *const schemes[] = {CLI_SCHEMES};
    size_t question = strcspn(complete_value_of(c), "?");

    if (complete_value_of(c)[question])
        complete_offer_url_options(c, question);
    else
        for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
            complete_offer(c, "part", schemes[i], NULL);
}

static void complete_offer_values(struct completion *c,
                                  const struct cli_flag *flag)
{
    if (strchr(flag->value, '|'))
        complete_offer_alternatives(c, flag->value);
    else if (strcmp(flag->value, "URL") == 0)
        complete_offer_urls(c);
    else if (strcmp(flag->value, "NAME") == 0)
        complete_offer_names(c, CLI_LOCK_NAME); /* -l of run and hold */
    else if (strcmp(flag->value, "FILE") == 0)
        printf("files %zu%c", c->fixed, '\0');
}

static void complete_offer_flags(struct completion *c,
                                 const struct cli_flag *flags)
{
    char word[64];

    for (; flags->id; flags++) {
        if (flags->name)
            snprintf(word, sizeof word, "--%s", flags->name);
        else
            snprintf(word, sizeof word, "-%c", flags->id);
        if (flags->help)
            complete_offer(c, "words", word, flags->help);
    }
}

/* Finds a flag by its name. The name may be abbreviated, as for
 * getopt_long(). */
static const struct cli_flag *complete_flag_called(const struct cli_flag *flag,
                                                   const char *name)
{
    size_t len = strcspn(name, "=");

    for (; flag->id; flag++)
        if (flag->name && strncmp(flag->name, name, len) == 0)
            return flag;
    return NULL;
}

static const struct cli_flag *
complete_flag_of_letter(const struct cli_flag *flag, char letter)
{
    for (; flag->id; flag++)
        if (flag->id == letter)
            return flag;
    return NULL;
}

/* If the word is a flag that takes a value, returns the flag, else NULL. Sets
 * *value to the value in the word, or to NULL if the value is the next word. */
static const struct cli_flag *
complete_flag_with_value(const struct cli_flag *flags, const char *word,
                         const char **value)
{
    const struct cli_flag *flag = NULL;

    if (complete_begins(word, "--")) {
        flag = complete_flag_called(flags, word + 2);
        *value = strchr(word, '=');
        *value = *value ? *value + 1 : NULL;
        return flag && flag->value ? flag : NULL;
    }
    while (*++word) {
        flag = complete_flag_of_letter(flags, *word);
        if (flag && flag->value) {
            *value = word[1] ? word + 1 : NULL;
            return flag;
        }
    }
    return NULL;
}

/* What the words before the one to be completed have set. */
struct said {
    const struct cli_flag *pending; /* the flag whose value is the next word */
    const char *url;
    int operands;
    bool has_ended; /* -- has ended the flags */
    bool has_names; /* a flag gave the names: the first operand is COMMAND */
    int command;    /* index of the command's first word, or -1 */
};

static void complete_take_value(struct said *said, const struct cli_flag *flag,
                                const char *value)
{
    if (strcmp(flag->value, "URL") == 0)
        said->url = value;
    if (strcmp(flag->value, "NAME") == 0)
        said->has_names = true;
}

static void complete_take_flag(const struct cli_verb *verb, struct said *said,
                               const char *word)
{
    const char *value;
    const struct cli_flag *flag =
        complete_flag_with_value(verb->flags, word, &value);

    if (flag && value)
        complete_take_value(said, flag, value);
    else
        said->pending = flag;
}

/* Takes an operand. If the verb runs a command, also sets where the command
 * begins: after NAME and an optional --, or here if a flag has given the
 * name. */
static void complete_take_operand(const struct cli_verb *verb,
                                  struct said *said, int i, int n, char **words)
{
    said->operands++;
    if (verb->operand != CLI_COMMAND)
        return;
    said->command = said->has_names ? i : i + 1;
    if (!said->has_names && i + 2 < n && strcmp(words[i + 1], "--") == 0)
        said->command++;
}

static struct said complete_listen(const struct cli_verb *verb, int n,
                                   char **words)
{
    struct said said = {.command = -1};

    for (int i = 0; i < n - 1 && said.command < 0; i++) {
        if (said.pending) {
            complete_take_value(&said, said.pending, words[i]);
            said.pending = NULL;
        } else if (!said.has_ended && strcmp(words[i], "--") == 0) {
            said.has_ended = true;
        } else if (!said.has_ended && words[i][0] == '-' && words[i][1]) {
            complete_take_flag(verb, &said, words[i]);
        } else {
            complete_take_operand(verb, &said, i, n, words);
        }
    }
    return said;
}

static void complete_offer_command(struct completion *c, int at, int n,
                                   char **words)
{
    if (at == n - 1 && c->word[0] == '-' && at > 0 &&
        strcmp(words[at - 1], "--") != 0)
        complete_offer(c, "words", "--", "a command follows");
    else
        printf("command %d%c", at + 1, '\0'); /* the verb is word 0 */
}

static void complete_offer_operand(struct completion *c,
                                   const struct cli_verb *verb,
                                   const struct said *said)
{
    int name_at = verb->words ? 1 : 0;

    for (size_t i = 0; verb->words && !said->operands && verb->words[i]; i++)
        complete_offer(c, "words", verb->words[i], NULL);
    if (verb->operand != CLI_NOTHING && said->operands == name_at &&
        !said->has_names)
        complete_offer_names(c, verb->operand);
}

void cli_complete(const struct cli_verb *verb, int n, char **words)
{
    struct said said = complete_listen(verb, n, words);
    struct completion c = {.word = words[n - 1], .url = said.url};
    const struct cli_flag *flag;
    const char *value = NULL;

    if (verb->operand == CLI_COMMAND && said.has_names && said.command < 0 &&
        (said.has_ended || c.word[0] != '-') && !said.pending)
        said.command = n - 1;
    if (said.pending) {
        complete_offer_values(&c, said.pending);
    } else if (said.command >= 0) {
        complete_offer_command(&c, said.command, n, words);
    } else if (said.has_ended || c.word[0] != '-') {
        complete_offer_operand(&c, verb, &said);
    } else if ((flag = complete_flag_with_value(verb->flags, c.word, &value)) &&
               value) {
        c.fixed = (size_t)(value - c.word);
        complete_offer_values(&c, flag);
    } else {
        complete_offer_flags(&c, verb->flags);
        complete_offer_flags(&c, cli_flags_of_all);
    }
}

static const struct cli_verb *
complete_verb_called(const struct cli_verb *const *verbs, const char *name)
{
    while (*verbs && strcmp((*verbs)->name, name) != 0)
        verbs++;
    return *verbs;
}

static void complete_offer_verbs(struct completion *c,
                                 const struct cli_verb *const *verbs)
{
    for (; *verbs; verbs++)
        complete_offer(c, "words", (*verbs)->name, (*verbs)->summary);
}

/* Completes the words of a verb that is a separate program, by running that
 * program. */
static int complete_run_the_program(const struct cli_verb *verb, int n,
                                    char **words)
{
    char **argv = calloc((size_t)n + 4, sizeof *argv);
    int status = CLI_OSERR, i = 0;

    if (!argv)
        return status;
    argv[i++] = (char *)verb->name;
    argv[i++] = (char *)"__complete";
    argv[i++] = (char *)"--";
    memcpy(argv + i, words, (size_t)n * sizeof *argv);
    status = verb->main(n + i, argv);
    free(argv);
    return status;
}

int cli_complete_all(const struct cli_verb *const *verbs, int n, char **words)
{
    const struct cli_verb *verb;
    struct completion c = {.word = n > 0 ? words[n - 1] : ""};
    bool helps = n > 1 && strcmp(words[0], "help") == 0;

    if (n <= 1 || (helps && n == 2)) {
        complete_offer_verbs(&c, verbs);
        complete_offer(&c, "words", "help", "this, or what a verb does");
        if (c.word[0] == '-' && !helps)
            complete_offer_flags(&c, cli_flags_of_all);
        return CLI_OK;
    }
    verb = complete_verb_called(verbs, words[helps]);
    if (verb && verb->is_program)
        return complete_run_the_program(verb, n - 1 - helps, words + 1 + helps);
    if (verb && !helps)
        cli_complete(verb, n - 1, words + 1);
    return CLI_OK;
}
