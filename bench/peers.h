/* Processes of another library, which follow our commands
 * (tests/interop/peers.py). They are started once, and end with us. */
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

/* n of them together on one lock, each first for warm_ms without being
 * measured. Returns nanoseconds per pair, or -1. */
double peers_race(struct peers *, const char *const *argv, int n, int warm_ms);

/* How long the run is, and what each does. */
struct peers_turns {
    int ms, hold_ms, think_ms;
};

/* n of them take turns. Returns pairs per second, and the 99th percentile of
 * the waits; or -1. */
double peers_turns(struct peers *, const char *const *argv, int n,
                   const struct peers_turns *, double *p99_us);

#endif
