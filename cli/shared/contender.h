/* Between contend.c, which runs processes, and contender.c, which is one. */
#ifndef HF_CLI_CREW_H
#define HF_CLI_CREW_H

#include "contend.h"

#include <stdatomic.h>
#include <sys/types.h>

enum { LINE = 64 }; /* of the cache */

/* What the lock of one name guards. */
struct cell {
    _Alignas(LINE) volatile uint64_t entries;
    volatile uint32_t inside; /* contender number + 1, or 0 */
    volatile uint32_t last;   /* who was inside before */
    _Atomic uint32_t sharing; /* holders of a read lock or semaphore */
    volatile int64_t released_at;
};

struct counts {
    _Alignas(LINE) uint64_t pairs; /* until the end was called */
    uint64_t entries;              /* those, the first and the last ones */
    uint64_t handovers, violations;
    struct hist waits, handovers_ns;
};

struct shared {
    _Atomic bool stop;
    _Alignas(LINE) _Atomic int failed; /* the first code */
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
struct crew {
    struct arena *arena;
    hf_client *client;
    hf_lock **locks;
    unsigned names; /* how many of them */
    unsigned first; /* number of its first contender */
};

void crew_name(const struct arena *arena, unsigned i, char out[64]);
int crew_open(struct crew *crew, hf_error *err);
void crew_close(struct crew *crew);
/* In a child: contends until the end, then exits. */
_Noreturn void crew_main(struct arena *arena, unsigned number);

/* Keeps the first error for whoever runs us, and stops all. */
void crew_fail(struct arena *arena, int code, const hf_error *err);

#endif
