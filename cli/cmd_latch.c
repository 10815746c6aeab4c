/* holdfast latch: a count that is set once and counted down. */
#include "client.h"
#include "json.h"
#include "lock_error.h"
#include "mismatch.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/values.h"
#include "shared/verb.h"
#include "verbs.h"

#include <getopt.h>
#include <holdfast.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct options {
    const char *url;
    int64_t wait_ms;
    bool json, has_wait;
};

static const struct cli_flag flags[] = {
    CLI_FLAG_BACKEND,
    {'w', "wait", "DURATION", "with wait: exit with 75 after this time"},
    {'w', "timeout", "DURATION", NULL},
    {CLI_JSON, "json", NULL, "print what is left as a JSON object"},
    CLI_FLAG_END,
};

static void latch_print_left(const struct options *o, const char *name,
                             uint64_t left)
{
    if (!o->json) {
        printf("%llu\n", (unsigned long long)left);
        return;
    }
    json_open(NULL, '{');
    json_name("name", name, strlen(name));
    json_unsigned("left", left);
    json_close('}');
    json_end();
}

struct latch {
    const char *name;
    uint64_t count; /* operand N of `set' */
    hf_latch *handle;
};

static int latch_do_set(const struct options *o, const struct latch *l,
                        hf_error *err)
{
    int rc = hf_latch_set(l->handle, l->count, err);

    if (rc == HF_OK && o->json)
        latch_print_left(o, l->name, l->count);
    return rc;
}

static int latch_do_down(const struct options *o, const struct latch *l,
                         hf_error *err)
{
    uint64_t left = 0;
    int rc = hf_latch_down(l->handle, &left, err);

    if (rc == HF_OK)
        latch_print_left(o, l->name, left);
    return rc;
}

static int latch_do_wait(const struct options *o, const struct latch *l,
                         hf_error *err)
{
    int rc = hf_latch_wait(l->handle, o->wait_ms, NULL, err);

    if (rc == HF_OK && o->json)
        latch_print_left(o, l->name, 0);
    return rc;
}

static int latch_do_show(const struct options *o, const struct latch *l,
                         hf_error *err)
{
    uint64_t left = 0;
    int rc = hf_latch_get(l->handle, &left, err);

    if (rc == HF_OK)
        latch_print_left(o, l->name, left);
    return rc;
}

static const char *const words[] = {"set", "down", "wait", "show", NULL};
enum { SET, DOWN, WAIT, SHOW, WORDS };
static int (*const doers[])(const struct options *, const struct latch *,
                            hf_error *) = {latch_do_set, latch_do_down,
                                           latch_do_wait, latch_do_show};

static int latch_find_word(const char *typed)
{
    int i = 0;

    while (words[i] && strcmp(words[i], typed) != 0)
        i++;
    return i;
}

static int latch_take_option(struct options *o, int option)
{
    switch (option) {
    case 'b':
        o->url = optarg;
        return CLI_OK;
    case 'w':
        o->has_wait = true;
        return cli_duration(&cli_latch, "-w", optarg, 0, &o->wait_ms);
    case CLI_JSON:
        o->json = true;
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

/* Takes the N of `latch set', which follows the NAME. */
static int latch_take_count(int argc, char **argv, struct latch *l)
{
    if (argc < 2)
        return cli_misuse(&cli_latch, "%s is missing: latch set NAME N",
                          argc < 1 ? "a NAME" : "the N");
    if (cli_number(argv[1], 1, INT32_MAX, &l->count) < 0)
        return cli_misuse(&cli_latch, "N must be 1 to %d, not `%s'", INT32_MAX,
                          argv[1]);
    return CLI_OK;
}

static int latch_parse(struct options *o, int argc, char **argv, int *word,
                       struct latch *l)
{
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_flag(&cli_latch, argc, argv)) != -1)
        status = latch_take_option(o, option);
    if (status != CLI_OK)
        return status;
    argc -= optind;
    argv += optind;
    if (argc < 1)
        return cli_misuse(
            &cli_latch, "the action is missing; give set, down, wait or show");
    *word = latch_find_word(argv[0]);
    if (*word == WORDS)
        return cli_misuse(
            &cli_latch, "`%s': the choices are set, down, wait and show%s",
            argv[0], cli_similar(argv[0], "latch ", words, WORDS).text);
    if (o->has_wait && *word != WAIT)
        return cli_misuse(&cli_latch, "-w is for wait, not for %s", argv[0]);
    argc--;
    argv++;
    if (*word == SET) {
        status = latch_take_count(argc, argv, l);
        if (status != CLI_OK)
            return status;
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    return cli_name(&cli_latch, argc, argv, o->url, &l->name);
}

/* Prints why the verb failed, and returns the exit status. If the name is in
 * use as another kind of lock, prints that kind, if the server reports it. */
static int latch_failed(const struct options *o, hf_client *client,
                        const char *name, int rc, const hf_error *err)
{
    struct lock_options as = {
        .verb = &cli_latch, .url = o->url, .kind = HF_LATCH};

    if (rc == HF_EMISMATCH && mismatch_say(&as, client, name))
        return cli_exit_of(rc);
    return cli_failed_on(&cli_latch, name, rc, err);
}

static int latch_main(int argc, char **argv)
{
    struct options o = {.wait_ms = HF_FOREVER};
    hf_error err = HF_ERROR_INIT;
    struct latch l = {0};
    hf_client *client;
    int word = WORDS, rc, status = latch_parse(&o, argc, argv, &word, &l);

    if (status == CLI_OK)
        status = word == SHOW ? cli_open_existing(&cli_latch, o.url, &client)
                              : cli_open(&cli_latch, o.url, &client);
    if (status != CLI_OK)
        return status;
    if (!client) {
        latch_print_left(&o, l.name, 0);
        return CLI_OK;
    }
    rc = hf_latch_new(client, l.name, HF_CSTRING, &l.handle, &err);
    if (rc == HF_OK)
        rc = doers[word](&o, &l, &err);
    if (rc != HF_OK)
        status = latch_failed(&o, client, l.name, rc, &err);
    hf_latch_free(l.handle);
    hf_close(client);
    return status;
}

const struct cli_verb cli_latch = {
    .name = "latch",
    .summary = "sets a count, counts it down, or waits until it is 0",
    .synopsis = "latch [OPTION...] set NAME N\n"
                "latch [OPTION...] down|wait|show NAME",
    .about = "A latch is a count that is set once and counted down. wait waits "
             "until it is 0; down and show print what is left. A latch that "
             "was not set is at 0.",
    .flags = flags,
    .notes = "Exit status 75: wait ran out of time, or set found a latch that "
             "is not at 0.\n"
             "\n"
             "  holdfast latch set rollout 3         before the workers start\n"
             "  holdfast latch down rollout          by each worker when it "
             "is done\n"
             "  holdfast latch wait -w 10m rollout && ./switch-over\n",
    .operand = CLI_LATCH_NAME,
    .words = words,
    .main = latch_main,
};
