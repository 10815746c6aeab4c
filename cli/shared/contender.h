/*
 * One process of contenders, in the child: opens its client, waits for the
 * start, and takes and releases locks until the flag `stop' in the arena is
 * set. contend.c creates the arena, forks these processes and adds up their
 * counts.
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
    volatile uint32_t inside; /* number of the contender inside, + 1; or 0 */
    volatile uint32_t last;   /* the previous holder */
    _Atomic uint32_t sharing; /* current holders of a read lock or semaphore */
    volatile int64_t released_at;
};

struct counts {
    _Alignas(CACHE_LINE) uint64_t pairs; /* pairs before the end */
    uint64_t entries; /* entries into cells, including those before the start
                         and after the end */
    uint64_t handovers, violations;
    struct hist waits, handovers_ns;
};

struct shared {
    _Atomic bool stop;
    _Alignas(CACHE_LINE) _Atomic int failed; /* the first error code */
    hf_error error;
};

/* What all contenders share: one anonymous mapping and two pipes. */
struct arena {
    const struct contend *contend;
    struct shared *shared;
    struct cell *cells;    /* one per name */
    struct counts *counts; /* one per contender */
    size_t size, contenders;
    pid_t owner; /* the parent; its pid makes the names unique */
    /* each contender writes to ready; all start when go is closed */
    int ready[2], go[2];
};

/* One process of contenders. */
struct contender_group {
    struct arena *arena;
    hf_client *client;
    hf_lock **locks;
    unsigned names; /* how many locks: one per name */
    unsigned first; /* number of its first contender */
};

/* Writes the name of lock i. */
void contender_name(const struct arena *arena, unsigned i, char out[64]);
/* Opens the client and creates the locks of a group. Returns HF_OK or a code,
 * with *err if the library has failed. Call contender_close() in any case. */
int contender_open(struct contender_group *group, hf_error *err);
void contender_close(struct contender_group *group);
/* Runs in a child: contends until the end, then exits. */
_Noreturn void contender_main(struct arena *arena, unsigned number);

/* Keeps the first error for the parent, and stops all contenders. */
void contender_fail(struct arena *arena, int code, const hf_error *err);

/* Pins this process to the n-th of the processors that it may use, modulo their
 * number. */
void contender_pin(unsigned n);

#endif
