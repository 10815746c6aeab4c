/* holdfast bench: measures how many pairs (an acquire and its release) the
 * contenders complete per second, and how fair the locks are. */
#include "json.h"
#include "shared/args.h"
#include "shared/contend.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/screen.h"
#include "shared/values.h"
#include "shared/verb.h"
#include "verbs.h"

#include <errno.h>
#include <getopt.h>
#include <holdfast.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

enum {
    COUNT_MAX = 100000,
    PROCS_MAX = 1000, /* also the limit of --threads */
    CONTENDERS_MAX = 10000,
    RUNS_MAX = 1000,
};

struct options {
    struct contend contend;
    const char *kind;
    unsigned runs;
    bool fair, unfair; /* the option was given */
    bool json;
};

/* The results of all runs. */
struct series {
    struct contend_result *runs; /* sorted for printing, the slowest first */
    unsigned n;
    uint64_t violations;
    int signal; /* the signal that ended the runs early, or 0 */
};

enum {
    OPT_KIND = 256,
    OPT_PERMITS,
    OPT_FAIR,
    OPT_UNFAIR,
    OPT_PROCS,
    OPT_THREADS,
    OPT_NAMES,
    OPT_SECONDS,
    OPT_RUNS,
    OPT_HANDOFF,
    OPT_NOWAIT,
};

static const struct cli_flag flags[] = {
    CLI_FLAG_BACKEND,
    {OPT_KIND, "kind", "mutex|read|write|semaphore",
     "the kind of lock, or how a read-write lock is acquired (mutex)"},
    {OPT_PERMITS, "permits", "N", "size of the semaphore (2)"},
    {OPT_FAIR, "fair", NULL, "first come, first served"},
    {OPT_UNFAIR, "unfair", NULL, "the quickest contender gets the lock"},
    {OPT_PROCS, "procs", "N", "processes (1)"},
    {OPT_THREADS, "threads", "N", "threads in each process (1)"},
    {OPT_NAMES, "names", "N", "locks, chosen at random (1)"},
    {OPT_SECONDS, "seconds", "DURATION", "how long each run takes (1)"},
    {OPT_RUNS, "runs", "N", "how often to measure (3)"},
    {OPT_HANDOFF, "handoff", "N",
     "threads that may take turns on one grant (0)"},
    {OPT_NOWAIT, "nowait", NULL, "do not wait for the answer to a release"},
    CLI_FLAG_JSON,
    CLI_FLAG_END,
};

static int bench_no_kind(const char *text)
{
    static const char *const kinds[] = {"mutex", "read", "write", "semaphore"};

    return cli_misuse(
        &cli_bench, "--kind takes mutex, read, write or semaphore, not `%s'%s",
        text, cli_similar(text, "", kinds, sizeof kinds / sizeof *kinds).text);
}

static int bench_take_kind(struct options *o, const char *text)
{
    static const struct {
        const char *name;
        enum hf_kind kind;
        enum hf_mode mode;
    } kinds[] = {{"mutex", HF_MUTEX, HF_WRITE},
                 {"read", HF_RWLOCK, HF_READ},
                 {"write", HF_RWLOCK, HF_WRITE},
                 {"semaphore", HF_SEMAPHORE, HF_WRITE}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, text) == 0) {
            o->kind = kinds[i].name;
            o->contend.kind = kinds[i].kind;
            o->contend.mode = kinds[i].mode;
            return CLI_OK;
        }
    }
    return bench_no_kind(text);
}

static int bench_take_count(const char *option, const char *text, uint64_t min,
                            uint64_t max, uint32_t *out)
{
    uint64_t number;

    if (cli_number(text, min, max, &number) < 0)
        return cli_misuse(&cli_bench,
                          "%s takes a number from %d to %d, not `%s'", option,
                          (int)min, (int)max, text);
    *out = (uint32_t)number;
    return CLI_OK;
}

static int bench_take_option(struct options *o, int option, const char *value)
{
    switch (option) {
    case 'b':
        o->contend.url = value;
        return CLI_OK;
    case OPT_KIND:
        return bench_take_kind(o, value);
    case OPT_PERMITS:
        return bench_take_count("--permits", value, 1, COUNT_MAX,
                                &o->contend.permits);
    case OPT_FAIR:
        o->fair = true;
        return CLI_OK;
    case OPT_UNFAIR:
        o->unfair = true;
        return CLI_OK;
    case OPT_PROCS:
        return bench_take_count("--procs", value, 1, PROCS_MAX,
                                &o->contend.procs);
    case OPT_THREADS:
        return bench_take_count("--threads", value, 1, PROCS_MAX,
                                &o->contend.threads);
    case OPT_NAMES:
        return bench_take_count("--names", value, 1, COUNT_MAX,
                                &o->contend.names);
    case OPT_SECONDS:
        return cli_duration(&cli_bench, "--seconds", value, 1,
                            &o->contend.run_ms);
    case OPT_RUNS:
        return bench_take_count("--runs", value, 1, RUNS_MAX, &o->runs);
    case OPT_HANDOFF:
        return bench_take_count("--handoff", value, 0, COUNT_MAX,
                                &o->contend.handoff);
    case OPT_NOWAIT:
        o->contend.nowait = true;
        return CLI_OK;
    case CLI_JSON:
        o->json = true;
        return CLI_OK;
    default: /* cli_flag has printed what is wrong */
        return CLI_USAGE;
    }
}

/* Checks that the options fit together, and applies --fair, --unfair and the
 * default of --permits. */
static int bench_take_together(struct options *o)
{
    struct contend *c = &o->contend;

    if (o->fair && o->unfair)
        return cli_misuse(&cli_bench,
                          "--fair and --unfair; give only one of them");
    if (o->fair || o->unfair)
        c->fairness = o->fair ? HF_FAIR : HF_UNFAIR;
    if (c->permits != 0 && c->kind != HF_SEMAPHORE)
        return cli_misuse(&cli_bench,
                          "--permits is for --kind semaphore, not for %s",
                          o->kind);
    if (c->permits == 0 && c->kind == HF_SEMAPHORE)
        c->permits = 2;
    if ((uint64_t)c->procs * c->threads > CONTENDERS_MAX)
        return cli_misuse(&cli_bench,
                          "--procs %u --threads %u are %" PRIu64
                          " threads in all; at most %d are possible",
                          c->procs, c->threads, (uint64_t)c->procs * c->threads,
                          CONTENDERS_MAX);
    return CLI_OK;
}

static double bench_speed(const struct contend_result *run)
{
    return (double)run->pairs / run->seconds;
}

static int bench_by_speed(const void *a, const void *b)
{
    double left = bench_speed(a), right = bench_speed(b);

    return (left > right) - (left < right);
}

static void bench_print_json_run(const struct contend_result *r)
{
    json_real("seconds", r->seconds, 3);
    json_unsigned("pairs", r->pairs);
    json_real("pairs_per_s", bench_speed(r), 1);
    json_real("p50_us", r->p50_us, 3);
    json_real("p99_us", r->p99_us, 3);
    json_real("jain", r->jain, 4);
}

static void bench_print_json(const struct options *o, const struct series *all)
{
    const struct contend *c = &o->contend;
    const struct contend_result *median = &all->runs[(all->n - 1) / 2];
    char backend[32];

    cli_scheme(c->url, backend, sizeof backend);
    json_open(NULL, '{');
    json_text("backend", backend);
    json_text("kind", o->kind);
    json_bool("fair", median->fair);
    json_unsigned("procs", c->procs);
    json_unsigned("threads", c->threads);
    json_unsigned("names", c->names);
    bench_print_json_run(median);
    json_unsigned("violations", all->violations);
    json_real("min_pairs_per_s", bench_speed(&all->runs[0]), 1);
    json_real("median_pairs_per_s", bench_speed(median), 1);
    json_real("max_pairs_per_s", bench_speed(&all->runs[all->n - 1]), 1);
    json_bool("interrupted", all->signal);
    json_open("runs", '[');
    for (unsigned i = 0; i < all->n; i++) {
        json_open(NULL, '{');
        bench_print_json_run(&all->runs[i]);
        json_unsigned("violations", all->runs[i].violations);
        json_close('}');
    }
    json_close(']');
    json_close('}');
    json_end();
}

static void bench_print_text(const struct options *o, const struct series *all)
{
    const struct contend *c = &o->contend;
    const struct contend_result *r = &all->runs[(all->n - 1) / 2];
    char backend[32];

    cli_scheme(c->url, backend, sizeof backend);
    printf("%s, %s %s, %u process%s of %u thread%s, %u name%s, %u run%s of "
           "%.2f s%s\n",
           backend, r->fair ? "fair" : "unfair", o->kind, c->procs,
           c->procs == 1 ? "" : "es", c->threads, c->threads == 1 ? "" : "s",
           c->names, c->names == 1 ? "" : "s", all->n, all->n == 1 ? "" : "s",
           r->seconds, all->signal ? ", interrupted" : "");
    printf("%14.0f pairs per second", bench_speed(r));
    if (all->n > 1)
        printf(" (median; minimum %.0f, maximum %.0f)",
               bench_speed(&all->runs[0]), bench_speed(&all->runs[all->n - 1]));
    else
        printf(" (%" PRIu64 " pairs)", r->pairs);
    printf("\n%14.3f us to acquire, median\n", r->p50_us);
    printf("%14.3f us, 99th percentile\n", r->p99_us);
    printf("%14.4f fairness (Jain's index)\n", r->jain);
    printf("%14" PRIu64 " violations\n", all->violations);
}

static unsigned run_number, runs_in_all;

static void bench_show_progress(const struct contend *contend, double seconds,
                                uint64_t pairs)
{
    double left = (double)contend->run_ms / 1000 - seconds;

    cli_live("run %u of %u: %.1f s left, %" PRIu64 " pairs", run_number,
             runs_in_all, left > 0 ? left : 0, pairs);
}

/* Makes ^C end a run instead of the program. The contenders inherit the blocked
 * signals, so ^C does not end them. */
static int bench_catch_signals(struct contend *contend)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, waitpid() would
                                 fail */
    contend->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (contend->signals >= 0)
        return CLI_OK;
    cli_say(&cli_bench, "signalfd: %s", strerror(errno));
    return CLI_OSERR;
}

/* Adds a run to the results. An interrupted run counts only if it has completed
 * a pair and no other run has been kept. */
static void bench_keep_run(struct series *all, const struct contend_result *run)
{
    all->violations += run->violations;
    all->signal = run->signal;
    if (!run->signal || (all->n == 0 && run->pairs > 0))
        all->runs[all->n++] = *run;
}

/* Returns CLI_OK, or the exit status after printing what failed. */
static int bench_measure(const struct options *o, bool fair, struct series *all)
{
    struct contend_result run = {.fair = fair};
    int rc = HF_OK;

    runs_in_all = o->runs;
    for (run_number = 1; run_number <= o->runs && !all->signal; run_number++) {
        rc = contend_measure(&o->contend, &run);
        if (rc != HF_OK)
            break;
        bench_keep_run(all, &run);
    }
    cli_live(NULL);
    if (rc != HF_OK)
        return cli_failed(&cli_bench, "cannot measure", rc, &run.error);
    return CLI_OK;
}

/* Prints what has been measured, even after a failure, and returns the exit
 * status. */
static int bench_report(const struct options *o, struct series *all, int status)
{
    if (all->n > 0) {
        qsort(all->runs, all->n, sizeof *all->runs, bench_by_speed);
        if (o->json)
            bench_print_json(o, all);
        else
            bench_print_text(o, all);
    } else if (all->signal) {
        cli_say(&cli_bench, "interrupted before anything was measured");
    }
    if (all->violations > 0)
        return CLI_FAILED;
    if (all->signal) {
        cli_finish(CLI_OK);
        cli_die_of(all->signal);
    }
    return status;
}

static int bench_run_all(struct options *o)
{
    struct series all = {.runs = calloc(o->runs, sizeof *all.runs)};
    struct contend_result probe;
    int rc = contend_probe(&o->contend, &probe), status;

    if (rc != HF_OK || !all.runs) {
        free(all.runs);
        return cli_failed(&cli_bench, "cannot measure",
                          rc == HF_OK ? HF_ENOMEM : rc, &probe.error);
    }
    status = bench_catch_signals(&o->contend);
    if (status == CLI_OK) {
        if (cli_is_live())
            o->contend.progress = bench_show_progress;
        status = bench_measure(o, probe.fair, &all);
        status = bench_report(o, &all, status);
    }
    free(all.runs);
    return status;
}

static int bench_main(int argc, char **argv)
{
    struct options o = {.contend = {.kind = HF_MUTEX,
                                    .mode = HF_WRITE,
                                    .procs = 1,
                                    .threads = 1,
                                    .names = 1,
                                    .permits = 0,
                                    .run_ms = 1000},
                        .kind = "mutex",
                        .runs = 3};
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_flag(&cli_bench, argc, argv)) != -1)
        status = bench_take_option(&o, option, optarg);
    if (status != CLI_OK)
        return status;
    if (optind < argc)
        return cli_misuse(&cli_bench, "`%s': bench takes only options",
                          argv[optind]);
    status = bench_take_together(&o);
    if (status != CLI_OK)
        return status;
    o.contend.url = cli_url(o.contend.url);
    return bench_run_all(&o);
}

const struct cli_verb cli_bench = {
    .name = "bench",
    .summary = "measures how fast locks are, and how fair",
    .synopsis = "bench [OPTION...]",
    .about =
        "Acquires and releases locks as fast as possible, in several runs.",
    .flags = flags,
    .notes =
        "Prints pairs (acquire and release) per second, the median and the "
        "99th\npercentile of acquire, Jain's fairness index (1: equal shares), "
        "and violations:\nhow often two holders were inside at once (exit "
        "status 1). ^C ends it early and\nprints what was measured until "
        "then.\n"
        "\n"
        "  holdfast bench --procs 4\n"
        "  holdfast bench -b redis://db1 --procs 8 --seconds 10 --json\n",
    .main = bench_main,
};
