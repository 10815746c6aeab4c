/* holdfast lab: the options, the help, and the selection of scenarios. */
#include "../cli/shared/args.h"
#include "../cli/shared/complete.h"
#include "../cli/shared/exit_code.h"
#include "../cli/shared/message.h"
#include "../cli/shared/values.h"
#include "../cli/shared/verb.h"
#include "base/text.h"
#include "runner/lab.h"
#include "runner/lab_state.h"
#include "runner/progress.h"
#include "runner/report.h"
#include "runner/scenario.h"
#include "servers/places.h"
#include "supervisor.h"

#include <getopt.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    OPT_STORES = 256,
    OPT_SERVERS,
    OPT_HTML,
    OPT_WORKERS,
    OPT_OWN /* OPT_OWN + i is switches[i] */
};

static const struct cli_flag common[] = {
    {'b', "backends", "LIST",
     "where holdfast's locks live: shm, redis, redlock, zk, etcd, mariadb or "
     "URLs, separated by commas (HOLDFAST_URL, or else shm; with --servers "
     "all, but redlock and mariadb only in some scenarios)"},
    {OPT_STORES, "stores", "LIST",
     "where the data lives that the locks guard: file, redis, mariadb or URLs "
     "(file; with --servers all three)"},
    {OPT_SERVERS, "servers", NULL,
     "start temporary servers of all kinds for which no URL is given, and stop "
     "them at the end"},
    {OPT_WORKERS, "workers", "N", "processes that work at the same time (8)"},
    {CLI_JSON, "json", NULL, "print one JSON object per line"},
    {OPT_HTML, "html", "FILE", "write a page with tables, bars and timelines"},
};
enum { COMMON = sizeof common / sizeof *common };

/* The options that only some scenarios take. */
static const struct lab_switch {
    const char *name;
    enum lab_option bit;
    const char *value, *help;
} switches[] = {
    {"strategy", LAB_STRATEGY, "LIST",
     "strategies to try, separated by commas (all)"},
    {"stock", LAB_STOCK, "N", "items in stock (500)"},
    {"buyers", LAB_BUYERS, "N", "buyers, who want one item each (1000)"},
    {"waiters", LAB_WAITERS, "N", "waiters for one lock (1000)"},
    {"readers", LAB_READERS, "N", "readers that want the cache entry (200)"},
    {"trains", LAB_TRAINS, "N", "trains to choose from (16)"},
    {"seconds", LAB_SECONDS, "DURATION",
     "how long each measurement takes (0.4)"},
    {"ttl", LAB_TTL, "DURATION", "length of leases and sessions (1s)"},
};
enum { SWITCHES = sizeof switches / sizeof *switches };

#define LAB_SCENARIO(name) extern const struct lab_scenario lab_##name;
#include "scenarios/list.h"
#undef LAB_SCENARIO

static const struct lab_scenario *const scenarios[] = {
#define LAB_SCENARIO(name) &lab_##name,
#include "scenarios/list.h"
#undef LAB_SCENARIO
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static const struct lab_scenario *main_find(const char *name)
{
    for (size_t i = 0; i < SCENARIOS; i++)
        if (strcmp(scenarios[i]->name, name) == 0)
            return scenarios[i];
    return NULL;
}

static void main_print_names(void)
{
    for (size_t i = 0; i < SCENARIOS; i++)
        printf("  %-13s %s\n", scenarios[i]->name, scenarios[i]->summary);
}

static unsigned main_options_of_all(void)
{
    unsigned all = 0;

    for (size_t i = 0; i < SCENARIOS; i++)
        all |= scenarios[i]->options;
    return all;
}

/* The flags of one scenario, or of all scenarios. */
struct lab_flags {
    struct cli_flag flags[COMMON + SWITCHES + 1];
};

static struct lab_flags main_flags_of(const struct lab_scenario *scenario)
{
    unsigned options = scenario ? scenario->options : main_options_of_all();
    struct lab_flags of = {{CLI_FLAG_END}};
    size_t n = COMMON;

    memcpy(of.flags, common, sizeof common);
    for (int i = 0; i < SWITCHES; i++)
        if (options & switches[i].bit)
            of.flags[n++] =
                (struct cli_flag){OPT_OWN + i, switches[i].name,
                                  switches[i].value, switches[i].help};
    return of;
}

static void main_print_strategies(const struct lab_scenario *scenario)
{
    int at = 0;

    if (!scenario->strategies)
        return;
    puts("\nStrategies:");
    for (const char *const *s = scenario->strategies; *s; s++) {
        if (at + strlen(*s) > 70) {
            putchar('\n');
            at = 0;
        }
        at += printf("  %s", *s);
    }
    putchar('\n');
}

static int main_help(const struct lab_scenario *scenario)
{
    struct lab_flags flags = main_flags_of(scenario);
    char synopsis[64] = "lab SCENARIO|all|list [OPTION...]";
    struct cli_verb verb = {
        .synopsis = synopsis,
        .about = "Reproduces failures of locks on real servers, and "
                 "shows their effect.",
        .flags = flags.flags};

    if (scenario) {
        snprintf(synopsis, sizeof synopsis, "lab %s [OPTION...]",
                 scenario->name);
        verb.about = scenario->text;
    }
    cli_help(&verb);
    if (scenario) {
        main_print_strategies(scenario);
    } else {
        puts("\nScenarios (`holdfast help lab SCENARIO' says more):");
        main_print_names();
    }
    puts("\nExit status 0 if each row has the expected outcome (every expected "
         "failure\nhappened, and no other), 1 if not.\n");
    printf(
        "  holdfast lab %s\n  holdfast lab %s --servers --html report.html\n",
        scenario ? scenario->name : "oversell",
        scenario ? scenario->name : "all");
    return CLI_OK;
}

/* Prints the completions of the words that follow `lab'. */
static int main_complete(int n, char **words)
{
    const char *names[SCENARIOS + 3] = {"all", "list"};
    const struct lab_scenario *chosen = NULL;
    struct lab_flags flags;
    struct cli_verb verb = {.name = "lab", .words = names};

    for (int i = 0; i < n - 1 && !chosen; i++)
        chosen = main_find(words[i]);
    flags = main_flags_of(chosen);
    verb.flags = flags.flags;
    for (size_t i = 0; i < SCENARIOS; i++)
        names[2 + i] = scenarios[i]->name;
    cli_complete(&verb, n, words);
    return cli_finish(CLI_OK);
}

static int main_list(bool json)
{
    if (!json) {
        main_print_names();
        puts("\n`holdfast help lab SCENARIO' says more; `holdfast lab all "
             "--servers --html\nreport.html' runs all of them.");
        return CLI_OK;
    }
    for (size_t i = 0; i < SCENARIOS; i++) {
        printf("{\"scenario\":\"%s\",\"summary\":", scenarios[i]->name);
        report_json_text(scenarios[i]->summary);
        puts("}");
    }
    return CLI_OK;
}

static bool main_has_strategy(const struct lab_scenario *scenario,
                              const char *word, size_t len)
{
    const char *const *s = scenario->strategies;

    for (; s && *s; s++)
        if (strlen(*s) == len && strncmp(*s, word, len) == 0)
            return true;
    return len == 3 && strncmp(word, "all", 3) == 0;
}

static int main_check_strategies(const struct lab *lab,
                                 const struct lab_scenario *scenario)
{
    const char *list = lab->strategies;

    for (;;) {
        size_t n = strcspn(list, ",");

        if (!main_has_strategy(scenario, list, n))
            return cli_misuse(&lab_verb,
                              "%s has no strategy `%.*s'; `holdfast help lab "
                              "%s' lists its strategies",
                              scenario->name, (int)n, list, scenario->name);
        if (!list[n])
            return CLI_OK;
        list += n + 1;
    }
}

struct typed {
    const char *backends, *stores;
    bool help;
};

static int main_take_count(const char *name, const char *text, uint64_t min,
                           uint64_t max, uint64_t *out)
{
    if (cli_number(text, min, max, out) == 0)
        return CLI_OK;
    return cli_misuse(&lab_verb,
                      "--%s takes a number from %llu to %llu, not `%s'", name,
                      (unsigned long long)min, (unsigned long long)max, text);
}

static int main_take_ms(const char *name, const char *text, int64_t least,
                        int64_t most, int64_t *out)
{
    if (hf__parse_ms(text, out) == 0 && *out >= least && *out <= most)
        return CLI_OK;
    return cli_misuse(&lab_verb,
                      "--%s takes a duration of %lldms to %llds, not `%s'",
                      name, (long long)least, (long long)most / 1000, text);
}

static int main_take_switch(struct lab *lab, const struct lab_switch *one,
                            const char *value)
{
    struct lab_settings *settings = &lab->settings;

    lab->options |= one->bit;
    switch (one->bit) {
    case LAB_STRATEGY:
        lab->strategies = value;
        return CLI_OK;
    case LAB_STOCK:
        return main_take_count(one->name, value, 1, 1000000, &settings->stock);
    case LAB_BUYERS:
        return main_take_count(one->name, value, 1, 1000000, &settings->buyers);
    case LAB_WAITERS:
        return main_take_count(one->name, value, 1, 10000, &settings->waiters);
    case LAB_READERS:
        return main_take_count(one->name, value, 1, 2000, &settings->readers);
    case LAB_TRAINS:
        return main_take_count(one->name, value, 1, 1000, &settings->trains);
    case LAB_SECONDS:
        return main_take_ms(one->name, value, 50, 60000, &settings->seconds_ms);
    case LAB_TTL:
        return main_take_ms(one->name, value, 300, 10000, &settings->ttl_ms);
    }
    return CLI_USAGE;
}

static int main_take_option(struct lab *lab, struct typed *typed, int option,
                            const char *value)
{
    switch (option) {
    case 'b':
        typed->backends = value;
        return CLI_OK;
    case OPT_STORES:
        typed->stores = value;
        return CLI_OK;
    case OPT_SERVERS:
        lab->servers = true;
        return CLI_OK;
    case CLI_JSON:
        lab->json = true;
        return CLI_OK;
    case OPT_HTML:
        if (strstr(value, "://")) /* it may contain a password */
            return cli_misuse(&lab_verb, "--html takes a file, not `%s'",
                              value);
        lab->html = value;
        return CLI_OK;
    case OPT_WORKERS:
        lab->settings.workers_given = true;
        return main_take_count("workers", value, 2, 256,
                               &lab->settings.workers);
    case 'h':
        typed->help = true;
        return CLI_OK;
    case 'V':
        cli_print_version();
    case '?': /* cli_option has printed what is wrong */
        return CLI_USAGE;
    default:
        return main_take_switch(lab, &switches[option - OPT_OWN], value);
    }
}

static int main_parse(struct lab *lab, struct typed *typed, int argc,
                      char **argv)
{
    struct option options[COMMON + SWITCHES + 3] = {
        {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}};
    struct lab_flags all = main_flags_of(NULL);
    int option, status = CLI_OK;

    for (size_t i = 0; all.flags[i].id; i++)
        options[2 + i] = (struct option){all.flags[i].name,
                                         all.flags[i].value ? required_argument
                                                            : no_argument,
                                         NULL, all.flags[i].id};
    while (status == CLI_OK &&
           (option = cli_option(&lab_verb, argc, argv, ":b:hV", options)) != -1)
        status = main_take_option(lab, typed, option, optarg);
    return status;
}

/* Refuses an option that would have no effect. */
static int main_check_options(const struct lab *lab,
                              const struct lab_scenario *scenario)
{
    unsigned known = scenario ? scenario->options : main_options_of_all();

    for (size_t i = 0; i < SWITCHES; i++)
        if (lab->options & switches[i].bit && !(known & switches[i].bit))
            return cli_misuse(&lab_verb, "%s takes no --%s",
                              scenario ? scenario->name : "all",
                              switches[i].name);
    if (!lab->strategies)
        return CLI_OK;
    if (!scenario)
        return cli_misuse(&lab_verb,
                          "--strategy needs one scenario, not `all'");
    return main_check_strategies(lab, scenario);
}

static void main_run_one(struct lab *lab, const struct lab_scenario *scenario)
{
    char why[LAB_TEXT_MAX];

    /* Something can be missing only if all scenarios run, because main() has
     * already checked the places of a single scenario. */
    if (places_lack(lab, scenario, why)) {
        report_begin(lab, scenario);
        report_skip(lab, why);
    } else {
        report_begin(lab, scenario);
        lab_progress(lab, "%s", "begins");
        scenario->run(lab);
    }
    report_end(lab);
}

static void main_run(struct lab *lab)
{
    if (lab->chosen)
        main_run_one(lab, lab->chosen);
    for (size_t i = 0; i < SCENARIOS && !lab->chosen; i++)
        main_run_one(lab, scenarios[i]);
}

static int main_no_scenario(const char *name)
{
    const char *names[SCENARIOS + 2] = {"all", "list"};
    struct cli_hint hint;

    for (size_t i = 0; i < SCENARIOS; i++)
        names[2 + i] = scenarios[i]->name;
    hint = cli_similar(name, "", names, SCENARIOS + 2);
    return cli_misuse(&lab_verb, "no scenario is called `%s'%s", name,
                      hint.text[0] ? hint.text
                                   : "; `holdfast lab list' lists them");
}

/* Selects the scenario, or answers a request that runs none, such as `list'.
 * Returns an exit status. Clears *done if scenarios must be run, and sets it
 * otherwise. */
static int main_take_scenario(struct lab *lab, const struct typed *typed,
                              int operands, char **argv, bool *done)
{
    const char *name = operands ? argv[0] : NULL;

    lab->chosen = name ? main_find(name) : NULL;
    lab->all = name && strcmp(name, "all") == 0;
    *done = true;
    if (typed->help && (!name || lab->chosen || lab->all))
        return main_help(lab->chosen);
    if (!name)
        return cli_misuse(&lab_verb, "name a scenario; `holdfast lab list' "
                                     "lists them, and `all' runs them all");
    if (strcmp(name, "list") == 0)
        return operands == 1
                   ? main_list(lab->json)
                   : cli_misuse(&lab_verb,
                                "`%s' after list: list takes no argument",
                                argv[1]);
    if (!lab->chosen && !lab->all)
        return main_no_scenario(name);
    if (operands > 1)
        return cli_misuse(&lab_verb, "`%s': one scenario at a time, or all",
                          argv[1]);
    *done = false;
    return CLI_OK;
}

int main(int argc, char **argv)
{
    static struct lab lab = {.settings = {.workers = 8,
                                          .stock = 500,
                                          .buyers = 1000,
                                          .waiters = 1000,
                                          .readers = 200,
                                          .trains = 16,
                                          .seconds_ms = 400,
                                          .ttl_ms = 1000}};
    struct typed typed = {0};
    char why[LAB_TEXT_MAX];
    bool done = false;
    int status;

    setlocale(LC_CTYPE, "");
    if (argc > 3 && strcmp(argv[1], "__complete") == 0)
        return main_complete(argc - 3, argv + 3);
    lab_describe(&lab, argc, argv); /* before parsing reorders the words */
    status = main_parse(&lab, &typed, argc, argv);
    if (status == CLI_OK)
        status = main_take_scenario(&lab, &typed, argc - optind, argv + optind,
                                    &done);
    if (status != CLI_OK || done)
        return status;
    status = main_check_options(&lab, lab.chosen);
    if (status == CLI_OK && typed.backends)
        status = places_take_backends(&lab, typed.backends);
    if (status == CLI_OK && typed.stores)
        status = places_take_stores(&lab, typed.stores);
    if (status == CLI_OK)
        status = places_complete(&lab, typed.backends, typed.stores);
    if (status == CLI_OK && lab.chosen && places_lack(&lab, lab.chosen, why)) {
        cli_say(&lab_verb, "%s", why);
        status = CLI_USAGE;
    }
    return status == CLI_OK ? lab_supervise(&lab, main_run) : status;
}
