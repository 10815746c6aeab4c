/* Ways to hold something, for the cases with several kinds of lock. */
#ifndef REDIS_FAULTS_SIDE_H
#define REDIS_FAULTS_SIDE_H

#include "redis_faults.h"

#include "../../lib/proc.h"

#define OP_MS 400
#define TTL_MS 1200
#define SIZE 3

/* A way to hold something, and another way that conflicts with it. */
struct side {
    enum hf_kind kind;
    enum hf_mode mode, other_mode;
    uint32_t permits, other_permits;
};

extern const struct side mutex, reads, writes, permits;

/* Adds a client to the case, with a lock of that kind. */
hf_lock *lock_of(struct world *, const char *url, int64_t ttl_ms, int64_t op_ms,
                 enum hf_kind);
/* far_of() adds a client behind the proxy; near_of() adds one that connects
 * directly, with long timeouts. */
hf_lock *far_of(struct world *, const struct side *, int64_t ttl_ms,
                int64_t op_ms);
hf_lock *near_of(struct world *, const struct side *);

int take_as(hf_lock *, enum hf_mode, uint32_t count, int64_t wait_ms,
            hf_error *);
int take(hf_lock *, const struct side *, int64_t wait_ms, hf_error *);
int take_other(hf_lock *, const struct side *, int64_t wait_ms, hf_error *);

/* Fails if a hold is left that would block a client. */
void all_of_it_is_free(struct world *, const struct side *, hf_lock *);

/* puppet_opens() starts a process with a client and a lock or latch "n";
 * puppet_do() executes a command in it and returns the result. */
int puppet_do(struct proc *, struct proc_cmd *);
void puppet_opens(struct world *, struct proc *, enum hf_kind, int64_t ttl_ms);
/* The process acquires with a lease of TTL_MS. */
void puppet_takes(struct world *, struct proc *, const struct side *);

#endif
