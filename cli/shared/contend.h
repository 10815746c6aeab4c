/*
 * Contenders: processes and threads that take and release locks as fast as they
 * can, count the pairs (an acquire and its release), and detect two holders of
 * a lock at once. Shared by `holdfast bench` and bench/ratios.
 */
#ifndef HF_CLI_CONTEND_H
#define HF_CLI_CONTEND_H

#include <holdfast.h>
#include <stdbool.h>
#include <stdint.h>

struct contend {
    const char *url;
    enum hf_kind kind;
    enum hf_mode mode;
    enum hf_fairness fairness;
    uint32_t handoff, permits; /* permits: size of a semaphore */
    unsigned procs, threads, names;
    int64_t run_ms;
    int64_t hold_ms, think_ms; /* ms to sleep while holding, and after the
                                  release */
    bool nowait;               /* do not wait for the answer to a release */
    bool time_handovers;       /* reads the clock more often, for handover_us */
    bool pin;                  /* pins each process to its own processor */
    /* Called in the process that runs the contenders, a few times a second
     * while they contend; or NULL. */
    void (*progress)(const struct contend *contend, double seconds,
                     uint64_t pairs);
    int signals; /* a signalfd, whose signals must be blocked and end the run;
                    or 0 */
};

struct contend_result {
    double seconds;
    uint64_t pairs;
    uint64_t handovers; /* how often a lock passed from one contender to
                           another */
    uint64_t violations;
    double p50_us, p99_us; /* of acquire */
    double handover_us;    /* median time from a release to the return of the
                              next acquire, if that acquire was already waiting;
                              only with time_handovers */
    double jain;           /* Jain's index: 1 if all contenders made the same
                              number of pairs, 1/n if one of n made all of
                              them */
    bool fair;             /* as requested, or else as the backend chose */
    int signal;            /* the signal that ended the run early, or 0 */
    hf_error error;        /* of the first contender that failed */
};

/* Finds out whether the backend can be used, and whether its locks are fair, so
 * that not every contender has to find out. Returns HF_OK, or a code with
 * result->error. */
int contend_probe(const struct contend *contend, struct contend_result *result);
/* Makes one run, after a probe. Returns HF_OK, or a code with result->error. */
int contend_measure(const struct contend *contend,
                    struct contend_result *result);
/* Makes a probe and one run. */
int contend_run(const struct contend *contend, struct contend_result *result);

#endif
