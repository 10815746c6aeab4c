/*
 * conformance NAME|URL [PATTERN]
 *
 * For a NAME that servers.c knows, such as shm or redis, starts the server or
 * creates the directory. PATTERN (fnmatch() with FNM_EXTMATCH) chooses cases by
 * name. With CONF_PARTS=N in the environment, the cases are divided among N
 * processes that share the server; only for zk and zk-ensemble.
 */
#include "conf.h"

#include "../lib/shard.h"
#include "servers.h"

#include <fnmatch.h>
#include <signal.h>

/* Options for TSan, which by default ends a forked child that starts a thread.
 * In the cases about fork the child opens clients, which start threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

#define CASE_SECONDS 240 /* limit, after which a case counts as hung */
#define SETTLED_MS 3000  /* entries that expire do so within this time */

static const struct conf_case *cases[512];
static size_t cases_len;

/* Adds a case. Constructors of different files run in the order of meson.build,
 * but those of one file may run in any order, so cases are sorted. */
void conf_add_case(const struct conf_case *c)
{
    size_t at = cases_len++;

    if (cases_len > sizeof(cases) / sizeof(*cases))
        abort();
    for (; at > 0 && cases[at - 1]->line > c->line &&
           strcmp(cases[at - 1]->file, c->file) == 0;
         at--)
        cases[at] = cases[at - 1];
    cases[at] = c;
}

/* A case, and the fairness that it runs with. */
struct run {
    const struct conf_case *c;
    enum hf_fairness fairness;
    char name[128];
};

#define RUNS_MAX 1024
static struct run runs[RUNS_MAX];
static struct CMUnitTest tests[RUNS_MAX];
static size_t runs_len;
static const char *pattern; /* pattern of the chosen cases; NULL: all */

static void hung(int sig)
{
    static const char text[] = "conformance: a case hangs\n";

    if (write(2, text, sizeof(text) - 1) < 0)
        _exit(2);
    abort();
}

/* Notes what a failed case has left at the server, so that the next cases do
 * not fail because of it. A failed case does not close what it had opened. */
static void forgive(void)
{
    if (!conf.left)
        return;
    WAIT_FOR_MS(conf.left() == 0, SETTLED_MS);
    conf.failed_left = conf.left();
}

static void run(void **state)
{
    static bool has_failed; /* a case has begun and has not succeeded */
    const struct run *r = *state;
    size_t fds, tasks;

    if (has_failed)
        forgive();
    has_failed = true;
    fds = conf_count_entries("/proc/self/fd");
    /* May be too high, because joined threads may still exist for a moment. */
    tasks = conf_count_entries("/proc/self/task");
    conf.fairness = r->fairness;
    alarm(CASE_SECONDS);
    conf_begin();
    r->c->run();
    conf_end();
    alarm(0);
    COMES(conf_count_entries("/proc/self/task") <= tasks);
    assert_int_equal(conf_count_entries("/proc/self/fd"), fds);
    has_failed = false;
}

static void add(const struct conf_case *c, enum hf_fairness fairness,
                const char *suffix)
{
    struct run *r = &runs[runs_len];

    if (pattern && fnmatch(pattern, c->name, FNM_EXTMATCH))
        return;
    if (runs_len == RUNS_MAX) {
        fprintf(stderr, "conformance: more than %d cases\n", RUNS_MAX);
        abort();
    }
    r->c = c;
    r->fairness = fairness;
    snprintf(r->name, sizeof(r->name), "%s%s", c->name, suffix);
    tests[runs_len++] = (struct CMUnitTest){
        .name = r->name, .test_func = run, .initial_state = r};
}

static int caps_of(const struct conf_case *c)
{
    return c->flags & CONF_RWLOCK      ? conf.kind_caps[HF_RWLOCK]
           : c->flags & CONF_SEMAPHORE ? conf.kind_caps[HF_SEMAPHORE]
           : c->flags & CONF_LATCH     ? conf.kind_caps[HF_LATCH]
                                       : conf.kind_caps[HF_MUTEX];
}

static bool applies(const struct conf_case *c)
{
    int caps = caps_of(c);

    return caps && (!(c->flags & CONF_INSPECT) || (caps & HF_CAP_INSPECT)) &&
           (!(c->flags & CONF_FAIR) || (caps & HF_CAP_FAIR)) &&
           (!(c->flags & CONF_LEASE) || (caps & HF_CAP_LEASE)) &&
           (!(c->flags & CONF_WANTED) || (caps & HF_CAP_WANTED)) &&
           (!(c->flags & CONF_PUT) || (caps & HF_CAP_PUT)) &&
           (!(c->flags & CONF_WATCH) || conf.watches) &&
           (!(c->flags & CONF_PREFIX) || conf.watches_prefixes) &&
           (!(c->flags & CONF_FRESH) || conf.fresh) &&
           (!(c->flags & CONF_SECRET) || conf.secret) &&
           (!(c->flags & CONF_FAR) || conf.url_at);
}

static void collect(void)
{
    for (size_t i = 0; i < cases_len; i++) {
        const struct conf_case *c = cases[i];

        if (!applies(c))
            continue;
        if (c->flags & CONF_FAIR)
            add(c, HF_FAIR, "");
        else if (!(c->flags & CONF_EACH))
            add(c, HF_FAIR_DEFAULT, "");
        else if (caps_of(c) & HF_CAP_FAIR)
            add(c, HF_FAIR, "_fair");
        if ((c->flags & CONF_EACH) && !(c->flags & CONF_FAIR) &&
            (caps_of(c) & HF_CAP_UNFAIR))
            add(c, HF_UNFAIR, "_unfair");
    }
}

static int look_at_caps(void)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *c;

    if (hf_open(conf.url, NULL, &c, &err)) {
        fprintf(stderr, "conformance: %s\n", err.text);
        return -1;
    }
    for (int kind = HF_MUTEX; kind <= HF_LATCH; kind++)
        conf.kind_caps[kind] = hf_client_caps(c, (enum hf_kind)kind);
    conf.caps = conf.kind_caps[HF_MUTEX];
    return hf_close(c);
}

static int run_all(void)
{
    if (look_at_caps())
        return 1;
    collect();
    if (!runs_len)
        fprintf(stderr, "conformance: no case matches\n");
    return !runs_len ||
           _cmocka_run_group_tests("conformance", tests, runs_len, NULL, NULL);
}

static int run_part(unsigned index)
{
    return servers_part(index) || run_all();
}

int main(int argc, char **argv)
{
    const char *parts = getenv("CONF_PARTS");
    int failed = 1;

    if (proc_is_puppet(argc, argv))
        return proc_puppet();
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: conformance NAME|URL [PATTERN]\n");
        return 64;
    }
    signal(SIGALRM, hung);
    pattern = argv[2];
    if (!servers_start(argv[1]))
        failed = parts
                     ? shard_each((unsigned)strtoul(parts, NULL, 10), run_part)
                     : run_all();
    servers_stop();
    return failed != 0;
}
