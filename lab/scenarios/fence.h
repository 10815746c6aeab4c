/*
 * A number in a store, protected as docs/fencing.md says: from the first
 * contact on the store remembers the highest token it has seen, reads included,
 * and refuses a lower one. Check and access are one step.
 */
#ifndef HF_LAB_FENCE_H
#define HF_LAB_FENCE_H

#include "../runner/place.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

struct fence;

/* In the runner: creates it, in Redis, in MariaDB, or in a file (store is NULL,
 * or a file). */
void fence_make(struct lab *lab, const struct lab_place *store, int64_t value);
/* In the runner: the present number. */
int64_t fence_value(struct lab *lab, const struct lab_place *store);

/* In an actor, for as long as the actor lives. */
struct fence *fence_open(struct lab *lab, const struct lab_place *store);
/* token 0: the store does not check. False: refused, nothing was done. */
bool fence_read(struct fence *fence, uint64_t token, int64_t *value);
/* The same for a write. */
bool fence_write(struct fence *fence, uint64_t token, int64_t value);

#endif
