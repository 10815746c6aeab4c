/*
 * redlock_model [--small | --deep] [--only NAME] [--mutant NAME]
 *               [--compare NAME] [--list] [--help]
 *
 * Explores each configuration of the Redlock token protocol, and then each
 * mutant: the same protocol with one rule broken, which must be caught. Prints
 * one TAP line for each. --mutant explores only that mutant, and prints the
 * steps to the violation. --small leaves out the configurations that take
 * longer. --deep adds larger ones (up to 2 GB), and also explores the small
 * configurations of mutants with the rule in place, which must pass. See
 * redlock.h.
 */
#include "redlock.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two attempts with a lease of two ticks; the servers' clocks do not
 * advance. */
#define TWO .clients = 2, .lease = {2, 2}, .max_lease = 2, .reserve = 1
/* Two attempts with a lease of one tick. */
#define TINY .clients = 2, .lease = {1, 1}, .max_lease = 1, .reserve = 1
/* Three attempts with a lease of one tick. */
#define THREE .clients = 3, .lease = {1, 1, 1}, .max_lease = 1, .reserve = 1
/* Configurations with a restart: a tick has 3 clock units, and clocks are at
 * most 1 unit apart. */
#define RESTARTS                                                               \
    .clients = 2, .lease = {2, 2}, .max_lease = 2, .unit = 3, .reserve = 2,    \
    .restarts = 1
/* B is greater than the lease, but a grant reserves at most a lease. */
#define TOO_MUCH                                                               \
    .horizon = 2, .unit = 3, .reserve = 9, .restarts = 1, .no_undo = true

static const struct model configs[] = {
    {TWO, .name = "two", .about = "two attempts, clocks apart", .horizon = 4,
     .offset = {3}},
    {TWO, .name = "two-clocks", .about = "two attempts, clocks run",
     .horizon = 3, .unit = 1, .offset = {4}, .size = NORMAL},
    {TWO, .name = "two-renew", .about = "two attempts, a renewal", .horizon = 4,
     .renewals = 1, .size = NORMAL},
    {TWO, .name = "two-renew-twice",
     .about = "two attempts, two renewals, no undo, no release", .horizon = 4,
     .renewals = 2, .no_undo = true, .no_release = true, .size = NORMAL},
    {TWO, .name = "two-renew-clocks",
     .about = "two attempts, a renewal, clocks apart", .horizon = 1,
     .renewals = 1, .offset = {3}, .size = NORMAL},
    {THREE, .name = "three", .about = "three attempts, clocks apart",
     .offset = {3}},
    {THREE, .name = "three-expire", .about = "three attempts, leases expire",
     .horizon = 2},
    {THREE, .name = "three-crash",
     .about = "three attempts without undo, clocks apart", .horizon = 1,
     .offset = {3}, .no_undo = true},
    {THREE, .name = "three-clocks",
     .about = "three attempts, leases expire, clocks apart", .horizon = 1,
     .offset = {3}, .size = NORMAL},
    {THREE, TOO_MUCH, .name = "three-restart",
     .about = "three attempts, a restart, B is the lease, no undo",
     .size = NORMAL},
    {RESTARTS, .name = "restart-twice", .about = "two restarts, no undo",
     .horizon = 4, .restarts = 2, .no_undo = true, .size = NORMAL},
    {RESTARTS, .name = "restart-leases", .about = "restart, leases differ",
     .horizon = 3, .lease = {1, 2}, .offset = {1}, .size = NORMAL},
    {RESTARTS, .name = "restart-renew",
     .about = "a restart and a renewal, no undo, no release", .horizon = 4,
     .unit = 2, .renewals = 1, .no_undo = true, .no_release = true},
    {TWO, .name = "jump", .about = "keys expire early: tokens of two attempts",
     .horizon = 1, .offset = {3}, .jumps = true},
    {THREE, .name = "jump-three",
     .about = "keys expire early: tokens of three attempts, no undo",
     .no_undo = true, .jumps = true, .size = DEEP},
    {TWO, .name = "jump-renew", .about = "keys expire early: renewals",
     .offset = {3}, .renewals = 1, .jumps = true, .size = DEEP},
    {TWO, .name = "two-renew-long",
     .about = "two attempts, a renewal, clocks apart, a longer run",
     .horizon = 4, .offset = {3}, .renewals = 1, .size = DEEP},
    {THREE, .name = "three-renew", .about = "three attempts, a renewal",
     .renewals = 1, .size = DEEP},
    {RESTARTS, .name = "restart", .about = "a server restarts empty",
     .horizon = 4, .offset = {1}, .size = DEEP},
    {THREE, TOO_MUCH, .name = "three-restart-undo",
     .about = "three attempts, a restart, B is the lease, with undo",
     .no_undo = false, .size = DEEP},
    {RESTARTS, .name = "restart-renew-release",
     .about = "a restart, a renewal and a release, no undo", .horizon = 2,
     .unit = 2, .renewals = 1, .no_undo = true, .size = DEEP},
    {TINY, .name = "tiny-renew-twice",
     .about = "two renewals and a release, no undo", .renewals = 2,
     .no_undo = true, .size = DEEP},
};

/* Models that are small enough to be explored without the reductions too. */
static const struct model compared[] = {
    {TINY, .name = "tiny", .about = "clocks apart", .offset = {3},
     .size = NORMAL},
    {TINY, .name = "tiny-expire", .about = "leases expire", .horizon = 2},
    {TINY, .name = "tiny-renew", .about = "a renewal", .renewals = 1,
     .size = NORMAL},
    {TINY, .name = "tiny-restart", .about = "a restart", .horizon = 1,
     .unit = 2, .restarts = 1},
    {TINY, .name = "tiny-crash", .about = "keys expire early, no undo",
     .jumps = true, .no_undo = true},
    {TINY, .name = "tiny-jump", .about = "keys expire early", .jumps = true,
     .size = DEEP},
    {TINY, .name = "tiny-renew-expire", .about = "a renewal, leases expire",
     .horizon = 1, .renewals = 1, .size = DEEP},
};

static const struct model mutants[] = {
    {TWO, .name = "no-reservation", .broken = NO_RESERVATION, .horizon = 3,
     .offset = {3}, .about = "the token is used after one round without B"},
    {TWO, .name = "raise-any-owner", .broken = RAISE_ANY_OWNER, .jumps = true,
     .offset = {3},
     .about = "a raise does not check the owner (keys expire early)"},
    {TWO, .name = "raise-any-base", .broken = RAISE_ANY_BASE, .jumps = true,
     .offset = {3},
     .about = "a raise is sent to all and ignores base (keys expire early)"},
    {TWO, .name = "raise-minority", .broken = RAISE_MINORITY, .horizon = 3,
     .offset = {3}, .about = "one confirmed raise is enough"},
    {TWO, .name = "raise-deadline", .broken = RAISE_DEADLINE, .horizon = 4,
     .offset = {3}, .about = "the deadline counts from the second round"},
    {THREE, .name = "value-reused", .broken = VALUE_REUSED,
     .about = "a second attempt sends the grant with the same value"},
    {TWO, .name = "grant-twice", .broken = GRANT_TWICE,
     .about = "a repeated grant to the owner counts as a second vote"},
    {TWO, .name = "undo-after-use", .broken = UNDO_AFTER_USE, .offset = {3},
     .about = "a used token is undone, not released"},
    {THREE, .name = "undo-any-owner", .broken = UNDO_ANY_OWNER,
     .about = "an undo does not check the owner"},
    {THREE, .name = "undo-below-base", .broken = UNDO_BELOW_BASE,
     .about = "an undo sets top below base"},
    {THREE, .name = "release-any-owner", .broken = RELEASE_ANY_OWNER,
     .about = "a release does not check the owner"},
    {THREE, .name = "release-sets-t", .broken = RELEASE_SETS_TOKEN,
     .offset = {3}, .about = "a release or renewal sets the counters to t"},
    {THREE, .name = "drop-leaves-top", .broken = DROP_LEAVES_TOP, TOO_MUCH,
     .about = "a release or undo of the owner does not lower top"},
    {THREE, .name = "undo-leaves-top", .broken = DROP_LEAVES_TOP, TOO_MUCH,
     .no_undo = false, .no_release = true,
     .about = "the same without a release"},
    {TWO, .name = "deadline-from-reply", .broken = DEADLINE_FROM_REPLY,
     .horizon = 3, .about = "the deadline counts from the reply"},
    {TWO, .name = "renew-from-reply", .broken = RENEW_FROM_REPLY, .horizon = 4,
     .renewals = 1, .about = "the deadline counts from the renewal's reply"},
    {TWO, .name = "renew-two-rounds", .broken = RENEW_TWO_ROUNDS, .horizon = 4,
     .renewals = 2, .no_undo = true, .no_release = true,
     .about = "a renewal adds up the votes of two rounds"},
    {TWO, .name = "renew-revives", .revives = true, .horizon = 4, .renewals = 1,
     .about = "a renewal succeeds after the old deadline"},
    {THREE, .name = "renew-sets-base", .broken = RENEW_SETS_BASE, .horizon = 1,
     .renewals = 1, .no_undo = true, .size = NORMAL,
     .about = "a renewal that sets a key takes max(base, t), not max(top, t)"},
    {THREE, .name = "renew-exact", .broken = RENEW_EXACT, .horizon = 1,
     .renewals = 2, .no_undo = true, .size = NORMAL,
     .about = "a renewal writes max(t, the base that the client heard)"},
    {RESTARTS, .name = "no-stay-out", .broken = NO_STAY_OUT, .horizon = 1,
     .about = "a restarted server is used at once"},
    {RESTARTS, .name = "short-stay-out", .broken = SHORT_STAY_OUT, .horizon = 3,
     .about = "a restarted server stays out for less than max_lease"},
    {RESTARTS, .name = "own-stay-out", .broken = OWN_STAY_OUT, .horizon = 3,
     .lease = {2, 1}, .about = "a client takes its own lease for max_lease"},
    {TWO, .name = "majority-one", .broken = MAJORITY_ONE,
     .about = "one grant of three is enough"},
    {THREE, .name = "reserve-too-much", .broken = RESERVE_TOO_MUCH, TOO_MUCH,
     .about = "B is greater than the lease, and a server restarts"},
    {RESTARTS, .name = "clocks-apart", .broken = CLOCKS_APART, .horizon = 2,
     .reserve = 4, .offset = {1},
     .about = "clock difference + B exceeds the time out after a restart"},
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static unsigned tests, failures;

static void report(bool good, const char *kind, const struct model *m,
                   const struct outcome *o)
{
    printf("%sok %u - %s%s: %s; %s, %u states, %zu steps\n", good ? "" : "not ",
           ++tests, kind, m->name, m->about,
           o->violation ? "caught"
           : o->full    ? "too large"
                        : "no violation",
           o->states, o->depth);
    if (o->violation)
        printf("# %s\n", o->violation);
    fflush(stdout);
    failures += !good;
}

static void run_right(const struct model *m, const char *kind)
{
    struct outcome o = model_search(m, true);

    report(!o.violation && !o.full, kind, m, &o);
}

static void run_mutant(const struct model *m, bool trace)
{
    struct outcome o = model_search(m, trace);

    report(o.violation != NULL, "mutant ", m, &o);
}

static void run_compared(const struct model *m)
{
    uint32_t lost;
    struct outcome o = model_compare(m, &lost);

    report(!o.violation && !o.full && !lost, "unreduced ", m, &o);
    if (lost)
        printf("# %u states are missing in the reduced search\n", lost);
}

/* Runs the configuration of a mutant with every rule in place. */
static void run_unbroken(const struct model *mutant)
{
    struct model m = *mutant;

    m.broken = RIGHT;
    m.revives = false;
    m.size = DEEP;
    run_right(&m, "without mutant ");
}

static void run_all(enum size size)
{
    for (size_t i = 0; i < COUNT(configs); i++)
        if (configs[i].size <= size)
            run_right(&configs[i], "");
    for (size_t i = 0; i < COUNT(compared); i++)
        if (compared[i].size <= size)
            run_compared(&compared[i]);
    for (size_t i = 0; i < COUNT(mutants); i++) {
        if (mutants[i].size <= size)
            run_mutant(&mutants[i], false);
        /* Only a mutant with a small configuration: larger ones do not fit in
         * memory when no rule is broken. */
        if (size == DEEP && mutants[i].size == SMALL)
            run_unbroken(&mutants[i]);
    }
}

static const struct model *find(const struct model *list, size_t n,
                                const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, name))
            return &list[i];
    fprintf(stderr, "redlock_model: %s is unknown; --list prints all names\n",
            name);
    exit(2);
}

static void print_list(void)
{
    for (size_t i = 0; i < COUNT(configs); i++)
        printf("%-20s %s%s\n", configs[i].name, configs[i].about,
               configs[i].size == DEEP ? " (--deep)" : "");
    puts("compared:");
    for (size_t i = 0; i < COUNT(compared); i++)
        printf("%-20s %s\n", compared[i].name, compared[i].about);
    puts("mutants:");
    for (size_t i = 0; i < COUNT(mutants); i++)
        printf("%-20s %s\n", mutants[i].name, mutants[i].about);
}

static void print_help(void)
{
    puts("redlock_model [OPTION]: explores the Redlock token protocol\n"
         "  --small        leave out the configurations that take longer\n"
         "  --deep         add larger ones (minutes, up to 2 GB)\n"
         "  --only NAME    explore this configuration only\n"
         "  --mutant NAME  break one rule and print the steps to a violation\n"
         "  --compare NAME explore it with and without the reductions\n"
         "  --list         print the names of configurations and mutants\n"
         "  --help         print this text");
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"small", 0, NULL, 's'},   {"deep", 0, NULL, 'd'},
        {"only", 1, NULL, 'o'},    {"mutant", 1, NULL, 'm'},
        {"list", 0, NULL, 'l'},    {"help", 0, NULL, 'h'},
        {"compare", 1, NULL, 'c'}, {NULL, 0, NULL, 0}};
    const struct model *only = NULL, *mutant = NULL;
    enum size size = NORMAL;
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 's':
            size = SMALL;
            break;
        case 'd':
            size = DEEP;
            break;
        case 'o':
            only = find(configs, COUNT(configs), optarg);
            break;
        case 'm':
            mutant = find(mutants, COUNT(mutants), optarg);
            break;
        case 'c':
            run_compared(find(compared, COUNT(compared), optarg));
            printf("1..%u\n", tests);
            return failures ? 1 : 0;
        case 'l':
            print_list();
            return 0;
        case 'h':
            print_help();
            return 0;
        default:
            return 2;
        }
    }
    if (only)
        run_right(only, "");
    if (mutant)
        run_mutant(mutant, true);
    if (!only && !mutant)
        run_all(size);
    printf("1..%u\n", tests);
    return failures ? 1 : 0;
}
