/*
 * One process of contenders, in the child: opens its client, waits for the
 * start, and takes and releases locks until the arena says stop. contend.c
 * makes the arena, forks these processes and adds up what they have counted.
 */
#ifndef HF_CLI_CONTENDER_H
#define HF_CLI_CONTENDER_H

#include "contend.h"
#include "hist.h"

#include <holdfast.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { CACHE_LINE = 64 };

/* What the lock of one name guards. */
struct cell {
    _Alignas(CACHE_LINE) volatile uint64_t entries;
    volatile uint32_t inside; /* contender number + 1, or 0 */
    volatile uint32_t last;   /* who was inside before */
    _Atomic uint32_t sharing; /* holders of a read lock or semaphore */
    volatile int64_t released_at;
};

struct counts {
    _Alignas(CACHE_LINE) uint64_t pairs; /* until the end was called */
    uint64_t entries; /* those, the first and the last ones */
    uint64_t handovers, violations;
    struct hist waits, handovers_ns;
};

struct shared {
    _Atomic bool stop;
    _Alignas(CACHE_LINE) _Atomic int failed; /* the first code */
    hf_error error;
};

/* What they all share: one anonymous mapping and two pipes. */
struct arena {
    const struct contend *contend;
    struct shared *shared;
    struct cell *cells;    /* one a name */
    struct counts *counts; /* one a contender */
    size_t size, contenders;
    pid_t owner;         /* makes names different from those of other runs */
    int ready[2], go[2]; /* each says that it is ready; closed: go */
};

/* One process of them. */
struct contender_group {
    struct arena *arena;
    hf_client *client;
    hf_lock **locks;
    unsigned names; /* how many of them */
    unsigned first; /* number of its first contender */
};

void contender_name(const struct arena *arena, unsigned i, char out[64]);
int contender_open(struct contender_group *group, hf_error *err);
void contender_close(struct contender_group *group);
/* In a child: contends until the end, then exits. */
_Noreturn void contender_main(struct arena *arena, unsigned number);

/* Keeps the first error for whoever runs us, and stops all. */
void contender_fail(struct arena *arena, int code, const hf_error *err);

/* This process, to the n-th of the processors that it may use, going round. */
void contender_pin(unsigned n);

#endif
