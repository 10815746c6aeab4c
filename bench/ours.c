/* Measures holdfast in the same situations as its floors. */
#include "ratios.h"

#include <stdio.h>
#include <unistd.h>

void complain(const char *what, int code, const hf_error *err)
{
    fprintf(stderr, "ratios: %s: %s\n", what,
            err && err->text[0] ? err->text : hf_error_text(code));
}

struct pairing {
    hf_lock *lock;
    hf_acquire_options options;
    bool nowait;
};

static int step(void *arg)
{
    const struct pairing *pairing = arg;
    hf_error err = HF_ERROR_INIT;
    int rc = HF_OK;

    for (int i = 0; i < 1000 && rc == HF_OK; i++) {
        rc = hf_lock_acquire(pairing->lock, &pairing->options, &err);
        if (rc == HF_OK)
            rc = pairing->nowait ? hf_lock_release_nowait(pairing->lock, &err)
                                 : hf_lock_release(pairing->lock, &err);
    }
    if (rc != HF_OK)
        complain("pair", rc, &err);
    return rc == HF_OK ? 0 : -1;
}

static double by_itself(const char *url, enum hf_kind kind,
                        enum hf_fairness fairness, enum hf_mode mode,
                        bool nowait)
{
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    struct pairing pairing = {.options = HF_ACQUIRE_OPTIONS_INIT,
                              .nowait = nowait};
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    double ns = -1;
    int rc = hf_open(url, NULL, &client, &err);

    options.kind = kind;
    options.fairness = fairness;
    if (kind == HF_SEMAPHORE)
        options.permits = 10;
    pairing.options.mode = mode;
    if (rc == HF_OK)
        rc = hf_lock_new(client, "holdfast-ratios", HF_CSTRING, &options,
                         &pairing.lock, &err);
    if (rc == HF_OK)
        ns = ns_per_pair(step, &pairing);
    else
        complain("by_itself", rc, &err);
    hf_lock_free(pairing.lock);
    hf_close(client);
    return ns;
}

double ours_pair_default(const char *url)
{
    return by_itself(url, HF_MUTEX, HF_FAIR_DEFAULT, HF_WRITE, false);
}

double ours_pair(const char *url)
{
    return by_itself(url, HF_MUTEX, HF_UNFAIR, HF_WRITE, false);
}

double ours_pair_fair(const char *url)
{
    return by_itself(url, HF_MUTEX, HF_FAIR, HF_WRITE, false);
}

double ours_pair_fair_nowait(const char *url)
{
    return by_itself(url, HF_MUTEX, HF_FAIR, HF_WRITE, true);
}

double ours_pair_read(const char *url)
{
    return by_itself(url, HF_RWLOCK, HF_FAIR_DEFAULT, HF_READ, false);
}

double ours_pair_write(const char *url)
{
    return by_itself(url, HF_RWLOCK, HF_FAIR_DEFAULT, HF_WRITE, false);
}

double ours_pair_semaphore(const char *url)
{
    return by_itself(url, HF_SEMAPHORE, HF_FAIR_DEFAULT, HF_WRITE, false);
}

double ours_pair_nowait(const char *url)
{
    return by_itself(url, HF_MUTEX, HF_UNFAIR, HF_WRITE, true);
}

static int together(const char *url, enum hf_fairness fairness, unsigned procs,
                    unsigned threads, struct contend_result *result)
{
    struct contend contend = {.url = url,
                              .kind = HF_MUTEX,
                              .fairness = fairness,
                              .procs = procs,
                              .threads = threads,
                              .names = 1,
                              .handoff = threads > 1 ? 1000 : 0,
                              .time_handovers = procs == 2,
                              .pin = procs == 2,
                              .run_ms = RUN_MS};
    int rc = contend_run(&contend, result);

    if (rc != HF_OK)
        complain("together", rc, &result->error);
    else if (result->violations)
        fprintf(stderr, "ratios: %llu violations\n",
                (unsigned long long)result->violations);
    return rc == HF_OK && result->violations == 0 ? 0 : -1;
}

static double pairs_per_second(const char *url, enum hf_fairness fairness,
                               unsigned procs, unsigned threads)
{
    struct contend_result r;

    if (together(url, fairness, procs, threads, &r) < 0)
        return -1;
    return (double)r.pairs / r.seconds;
}

double ours_four_unfair(const char *url)
{
    return pairs_per_second(url, HF_UNFAIR, 4, 1);
}

double ours_threads_fair(const char *url)
{
    return pairs_per_second(url, HF_FAIR, 1, 16);
}

double ours_threads_unfair(const char *url)
{
    return pairs_per_second(url, HF_UNFAIR, 1, 16);
}

static double reading(const char *url, unsigned procs, unsigned threads)
{
    struct contend contend = {.url = url,
                              .kind = HF_RWLOCK,
                              .mode = HF_READ,
                              .procs = procs,
                              .threads = threads,
                              .names = 1,
                              .run_ms = RUN_MS};
    struct contend_result r;
    int rc = contend_run(&contend, &r);

    if (rc != HF_OK) {
        complain("reading", rc, &r.error);
        return -1;
    }
    return (double)r.pairs / r.seconds;
}

double ours_threads_reading(const char *url)
{
    return reading(url, 1, 16);
}

double ours_eight_reading(const char *url)
{
    return 1e9 / reading(url, 8, 1);
}

double ours_handover_two(const char *url)
{
    struct contend_result r;

    if (together(url, HF_FAIR, 2, 1, &r) < 0 || r.handover_us <= 0)
        return -1;
    return r.handover_us * 1000;
}

double ours_eight_fair(const char *url)
{
    return 1e9 / pairs_per_second(url, HF_FAIR, 8, 1);
}

double ours_eight_unfair(const char *url)
{
    return 1e9 / pairs_per_second(url, HF_UNFAIR, 8, 1);
}

static int take_turns(const char *url, struct contend_result *result)
{
    struct contend contend = {.url = url,
                              .kind = HF_MUTEX,
                              .fairness = HF_UNFAIR,
                              .procs = 8,
                              .threads = 1,
                              .names = 1,
                              .hold_ms = TURNS_HOLD_MS,
                              .think_ms = TURNS_THINK_MS,
                              .run_ms = TURNS_MS};
    int rc = contend_run(&contend, result);

    if (rc != HF_OK)
        complain("turns", rc, &result->error);
    else if (result->violations)
        fprintf(stderr, "ratios: %llu violations\n",
                (unsigned long long)result->violations);
    return rc == HF_OK && result->violations == 0 ? 0 : -1;
}

double ours_turns(const char *url)
{
    struct contend_result r;

    return take_turns(url, &r) < 0 ? -1 : (double)r.pairs / r.seconds;
}

double ours_turns_p99(const char *url)
{
    struct contend_result r;

    return take_turns(url, &r) < 0 ? -1 : r.p99_us / 1000;
}
