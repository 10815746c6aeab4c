/* Processes of another library, which do what they are told
 * (tests/interop/peers.py); they are started once, and end with us. */
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

/* n of them together on one lock, each first for warm_ms in vain:
 * nanoseconds a pair, or -1. */
double peers_race(struct peers *, const char *const *argv, int n, int warm_ms);

#endif
