/* holdfast bench: how many lock and unlock pairs a second, and how fairly. */
#include "cli.h"
#include "contend.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: holdfast bench [OPTION...]\n"
    "\n"
    "Takes and releases locks as fast as it can, and counts.\n"
    "\n"
    "  -b, --backend URL   where the locks live (else HOLDFAST_URL, else "
    "shm:)\n"
    "      --kind KIND     mutex (default), read, write or semaphore\n"
    "      --permits N     size of the semaphore, of no other kind (2)\n"
    "      --fair, --unfair\n"
    "      --procs N       processes (1)\n"
    "      --threads N     threads in each (1)\n"
    "      --names N       locks, chosen at random (1)\n"
    "      --seconds S     how long (1)\n"
    "      --handoff N     threads that may take turns on one grant (0)\n"
    "      --nowait        do not wait for the answer to a release\n"
    "      --json          one object on one line\n"
    "\n"
    "Prints pairs a second, the median and the 99th percentile of acquire, "
    "Jain's\nfairness index (1: all contenders got the same), and violations: "
    "how often two\nwere inside at once. Exit status 1 if there were any.\n";

struct options {
    struct contend contend;
    const char *kind;
    bool fair, unfair; /* was said */
    bool json, help;
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
    OPT_HANDOFF,
    OPT_NOWAIT,
    OPT_JSON,
};

static const struct option long_options[] = {
    {"backend", required_argument, NULL, 'b'},
    {"kind", required_argument, NULL, OPT_KIND},
    {"permits", required_argument, NULL, OPT_PERMITS},
    {"fair", no_argument, NULL, OPT_FAIR},
    {"unfair", no_argument, NULL, OPT_UNFAIR},
    {"procs", required_argument, NULL, OPT_PROCS},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"names", required_argument, NULL, OPT_NAMES},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"handoff", required_argument, NULL, OPT_HANDOFF},
    {"nowait", no_argument, NULL, OPT_NOWAIT},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int take_kind(struct options *o, const char *text)
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
    return cli_misuse(&cli_bench,
                      "--kind takes mutex, read, write or semaphore, not `%s'",
                      text);
}

static int take_count(const char *option, const char *text, uint64_t min,
                      uint32_t *out)
{
    uint64_t number;

    if (cli_number(text, min, 100000, &number) < 0)
        return cli_misuse(&cli_bench,
                          "%s takes a number from %d to 100000, not `%s'",
                          option, (int)min, text);
    *out = (uint32_t)number;
    return CLI_OK;
}

static int take_seconds(struct options *o, const char *text)
{
    if (hf__parse_ms(text, &o->contend.run_ms) < 0 || o->contend.run_ms == 0)
        return cli_misuse(&cli_bench,
                          "--seconds takes a duration, as in 10, 0.5 or "
                          "500ms, not `%s'",
                          text);
    return CLI_OK;
}

static int take_option(struct options *o, int option, const char *value)
{
    switch (option) {
    case 'b':
        o->contend.url = value;
        return CLI_OK;
    case OPT_KIND:
        return take_kind(o, value);
    case OPT_PERMITS:
        return take_count("--permits", value, 1, &o->contend.permits);
    case OPT_FAIR:
        o->fair = true;
        return CLI_OK;
    case OPT_UNFAIR:
        o->unfair = true;
        return CLI_OK;
    case OPT_PROCS:
        return take_count("--procs", value, 1, &o->contend.procs);
    case OPT_THREADS:
        return take_count("--threads", value, 1, &o->contend.threads);
    case OPT_NAMES:
        return take_count("--names", value, 1, &o->contend.names);
    case OPT_SECONDS:
        return take_seconds(o, value);
    case OPT_HANDOFF:
        return take_count("--handoff", value, 0, &o->contend.handoff);
    case OPT_NOWAIT:
        o->contend.nowait = true;
        return CLI_OK;
    case OPT_JSON:
        o->json = true;
        return CLI_OK;
    case 'h':
        o->help = true;
        return CLI_OK;
    default: /* cli_option has said what is wrong */
        return CLI_USAGE;
    }
}

/* What belongs together, and what does not. */
static int take_together(struct options *o)
{
    struct contend *c = &o->contend;

    if (o->fair && o->unfair)
        return cli_misuse(&cli_bench, "--fair and --unfair: one of them");
    if (o->fair || o->unfair)
        c->fairness = o->fair ? HF_FAIR : HF_UNFAIR;
    if (c->permits != 0 && c->kind != HF_SEMAPHORE)
        return cli_misuse(&cli_bench,
                          "--permits is for --kind semaphore, not for %s",
                          o->kind);
    if (c->permits == 0 && c->kind == HF_SEMAPHORE)
        c->permits = 2;
    return CLI_OK;
}

static void print_json(const struct options *o, const struct contend_result *r)
{
    const struct contend *c = &o->contend;
    char backend[32];

    cli_scheme(c->url, backend, sizeof backend);
    printf("{\"backend\":\"%s\",\"kind\":\"%s\",\"fair\":%s,\"procs\":%u,"
           "\"threads\":%u,\"names\":%u,\"seconds\":%.3f,\"pairs\":%" PRIu64
           ",\"pairs_per_s\":%.1f,\"p50_us\":%.3f,\"p99_us\":%.3f,"
           "\"jain\":%.4f,\"violations\":%" PRIu64 "}\n",
           backend, o->kind, r->fair ? "true" : "false", c->procs, c->threads,
           c->names, r->seconds, r->pairs, (double)r->pairs / r->seconds,
           r->p50_us, r->p99_us, r->jain, r->violations);
}

static void print_text(const struct options *o, const struct contend_result *r)
{
    const struct contend *c = &o->contend;
    char backend[32];

    cli_scheme(c->url, backend, sizeof backend);
    printf("%s, %s %s, %u process%s of %u thread%s, %u name%s, %.2f s\n",
           backend, r->fair ? "fair" : "unfair", o->kind, c->procs,
           c->procs == 1 ? "" : "es", c->threads, c->threads == 1 ? "" : "s",
           c->names, c->names == 1 ? "" : "s", r->seconds);
    printf("%14.0f pairs per second (%" PRIu64 " pairs)\n",
           (double)r->pairs / r->seconds, r->pairs);
    printf("%14.3f us to acquire, median\n", r->p50_us);
    printf("%14.3f us, 99th percentile\n", r->p99_us);
    printf("%14.4f fairness (Jain's index)\n", r->jain);
    printf("%14" PRIu64 " violations\n", r->violations);
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
                        .kind = "mutex"};
    struct contend_result result;
    int option, status = CLI_OK, rc;

    while (status == CLI_OK &&
           (option =
                cli_option(&cli_bench, argc, argv, ":b:h", long_options)) != -1)
        status = take_option(&o, option, optarg);
    if (status != CLI_OK)
        return status;
    if (o.help)
        return cli_help(&cli_bench);
    if (optind < argc)
        return cli_misuse(&cli_bench, "`%s': bench takes options alone",
                          argv[optind]);
    status = take_together(&o);
    if (status != CLI_OK)
        return status;
    o.contend.url = cli_url(o.contend.url);
    rc = contend_run(&o.contend, &result);
    if (rc != HF_OK)
        return cli_failed(&cli_bench, "cannot measure", rc, &result.error);
    if (o.json)
        print_json(&o, &result);
    else
        print_text(&o, &result);
    return result.violations == 0 ? CLI_OK : CLI_FAILED;
}

const struct cli_verb cli_bench = {
    "bench", "measures how fast locks go, and how fairly", usage, bench_main};
