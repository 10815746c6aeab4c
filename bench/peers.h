/* Processes that lock with another library. They execute the commands of
 * tests/interop/peers.py, are started once, and end with this process. A pair
 * is one acquire and its release. */
#ifndef HF_BENCH_PEERS_H
#define HF_BENCH_PEERS_H

#include <stdbool.h>
#include <stdio.h>

enum { PEERS = 8 };

struct peers {
    struct peer {
        FILE *to, *from;
    } peer[PEERS];
    bool is_warm[PEERS + 1];
};

/* Runs n processes together on one lock. If no n processes have been measured
 * yet, first lets them run for warm_ms without measuring. Returns nanoseconds
 * per pair, or -1. */
double peers_race(struct peers *, const char *const *argv, int n, int warm_ms);

/* How long a run lasts, how long a process holds the lock each time, and how
 * long it then pauses. */
struct peers_turns {
    int ms, hold_ms, think_ms;
};

/* Lets n processes take turns. Returns how many pairs they complete per second,
 * or -1. Sets *p99_us to the 99th percentile of their waits. */
double peers_turns(struct peers *, const char *const *argv, int n,
                   const struct peers_turns *, double *p99_us);

#endif
