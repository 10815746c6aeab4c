/*
 * The simulation of the core: runs seed, seed + 1, ... until --runs runs or
 * --grants grants are reached.
 *
 * sim [OPTION...]
 *   --seed N     the first seed; a given seed is run once, unless --runs or
 *                --catch is given too
 *   --runs N     the number of runs, instead of --grants
 *   --grants N   the number of grants after which the program ends
 *   --quota N    the number of acquires of a run
 *   --break NAME break the rule NAME of what surrounds the core
 *   --catch      for deliberately broken variants: succeed if a checker fails,
 *                and print one line that names the checker
 *   --verbose    print what happens
 *   --breaks     print the names for --break
 *
 * A failure prints its seed and how to reproduce it.
 */
#include "sim.h"

#include "../lib/tally.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
} breaks[] = {
    {"release-any", BREAK_RELEASE_ANY},
    {"renew-revives", BREAK_RENEW_REVIVES},
    {"token-restarts", BREAK_TOKEN_RESTARTS},
    {"wall-clock", BREAK_WALL_CLOCK},
    {"attempt-twice", BREAK_ATTEMPT_TWICE},
    {"abandon-half", BREAK_ABANDON_HALF},
    {"token-hold-id", BREAK_TOKEN_HOLD},
    {"no-bell", BREAK_NO_BELL},
    {"read-freely", BREAK_READ_FREELY},
    {"count-holds", BREAK_COUNT_HOLDS},
    {"token-shared", BREAK_TOKEN_SHARED},
    {"ask-for-one", BREAK_ASK_FOR_ONE},
};

struct options {
    uint64_t seed, runs, grants, quota;
    unsigned broken;
    bool catch, verbose;
};

static unsigned break_of(const char *name)
{
    for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++)
        if (!strcmp(breaks[i].name, name))
            return breaks[i].bit;
    fprintf(stderr, "sim: unknown --break name: %s\n", name);
    exit(2);
}

static struct options parse(int argc, char **argv)
{
    static const struct option longs[] = {
        {"seed", 1, NULL, 's'},    {"runs", 1, NULL, 'r'},
        {"grants", 1, NULL, 'g'},  {"quota", 1, NULL, 'q'},
        {"break", 1, NULL, 'b'},   {"catch", 0, NULL, 'c'},
        {"verbose", 0, NULL, 'v'}, {"breaks", 0, NULL, 'l'},
        {NULL, 0, NULL, 0}};
    struct options o = {.seed = 1, .grants = 2000000, .quota = 1500};
    bool one = false;
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 's':
            o.seed = strtoull(optarg, NULL, 0);
            one = true;
            break;
        case 'r':
            o.runs = strtoull(optarg, NULL, 0);
            break;
        case 'g':
            o.grants = strtoull(optarg, NULL, 0);
            break;
        case 'q':
            o.quota = strtoull(optarg, NULL, 0);
            break;
        case 'b':
            o.broken |= break_of(optarg);
            break;
        case 'c':
            o.catch = true;
            break;
        case 'v':
            o.verbose = true;
            break;
        case 'l':
            for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++)
                puts(breaks[i].name);
            exit(0);
        default:
            exit(2);
        }
    }
    if (one && !o.runs && !o.catch)
        o.runs = 1;
    return o;
}

static void print_tally(const struct tally *t, uint64_t runs)
{
    printf("# %llu runs: %llu acquires, %llu granted, %llu reentries, %llu "
           "events\n",
           (unsigned long long)runs, t->calls, t->grants, t->reentries,
           t->events);
    printf(
        "# granted: %llu reads (%llu of them joined), %llu permits, %llu latch "
        "waits; %llu downgrades\n",
        t->shared, t->joined, t->permits, t->through, t->downgrades);
    printf(
        "# faults: %llu kills, %llu stops, %llu server stops, %llu server "
        "refusals, %llu restarts, %llu resets, %llu times of cut connections, "
        "%llu late requests, %llu repeated requests, %llu lost wakeups\n",
        t->kills, t->stops, t->freezes, t->ills, t->restarts, t->resets,
        t->cuts, t->lates, t->copies, t->bells);
    printf("# %llu periods of refusal, which refused %llu acquires\n", t->sulks,
           t->refused);
}

static void print_line(const struct tally *t, bool violation)
{
    tally_line_print(&(struct tally_line){
        .grants = t->grants,
        .kills = t->kills,
        .stops = t->stops,
        .faults = t->freezes + t->ills + t->restarts + t->resets + t->cuts +
                  t->lates + t->copies + t->bells + t->sulks,
        .violations = violation});
}

static int failed(const struct world *w, const struct options *o, uint64_t seed)
{
    printf("not ok 1 - simulation\n");
    printf("# %s: %s\n", w->verdict.check, w->verdict.text);
    printf("# profile %s; reproduce: sim --seed %llu --quota %llu --verbose\n",
           w->cfg.profile, (unsigned long long)seed,
           (unsigned long long)o->quota);
    return 1;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    struct world *w = calloc(1, sizeof(*w));
    uint64_t seed = o.seed;
    int rc = 0;

    if (!w)
        return 2;
    w->broken = o.broken;
    w->verbose = o.verbose;
    if (!o.catch)
        printf("1..1\n");
    while (o.runs ? seed < o.seed + o.runs : w->tally.grants < o.grants) {
        world_run(w, seed, o.quota);
        if (w->verdict.check)
            break;
        seed++;
    }
    if (o.catch) {
        printf("%s %llu seed %llu (%s) %s\n",
               w->verdict.check ? w->verdict.check : "survived",
               w->tally.grants, (unsigned long long)seed, w->cfg.profile,
               w->verdict.check ? w->verdict.text : "");
        rc = !w->verdict.check;
    } else {
        print_tally(&w->tally, seed - o.seed);
        print_line(&w->tally, w->verdict.check != NULL);
        if (w->verdict.check)
            rc = failed(w, &o, seed);
        else
            printf("ok 1 - simulation\n");
    }
    world_fini(w);
    free(w);
    return rc;
}
