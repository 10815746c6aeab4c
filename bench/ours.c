/* holdfast, in the same situations as its floors. */
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
    bool nowait;
};

static int step(void *arg)
{
    const struct pairing *pairing = arg;
    hf_error err = HF_ERROR_INIT;
    int rc = HF_OK;

    for (int i = 0; i < 1000 && rc == HF_OK; i++) {
        rc = hf_lock_acquire(pairing->lock, NULL, &err);
        if (rc == HF_OK)
            rc = pairing->nowait ? hf_lock_release_nowait(pairing->lock, &err)
                                 : hf_lock_release(pairing->lock, &err);
    }
    if (rc != HF_OK)
        complain("pair", rc, &err);
    return rc == HF_OK ? 0 : -1;
}

static double alone(const char *url, bool nowait)
{
    hf_lock_options unfair = HF_LOCK_OPTIONS_INIT;
    struct pairing pairing = {.nowait = nowait};
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    double ns = -1;
    int rc = hf_open(url, NULL, &client, &err);

    unfair.fairness = HF_UNFAIR;
    if (rc == HF_OK)
        rc = hf_lock_new(client, "holdfast-ratios", HF_CSTRING, &unfair,
                         &pairing.lock, &err);
    if (rc == HF_OK)
        ns = ns_per_pair(step, &pairing);
    else
        complain("alone", rc, &err);
    hf_lock_free(pairing.lock);
    hf_close(client);
    return ns;
}

double ours_pair(const char *url)
{
    return alone(url, false);
}

double ours_pair_nowait(const char *url)
{
    return alone(url, true);
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
