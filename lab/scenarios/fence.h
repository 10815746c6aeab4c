/*
 * A number in a store, as docs/fencing.md protects it: the store remembers the
 * highest token it has seen, from the first contact on, reads included, and
 * refuses a lower one. Check and access are one step.
 */
#ifndef HF_LAB_FENCE_H
#define HF_LAB_FENCE_H

#include "../runner/place.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

struct fence;

/* In the runner: makes it new, in Redis, in MariaDB, or (NULL too) in a file.
 */
void fence_make(struct lab *lab, const struct lab_place *store, int64_t value);
/* In the runner: the number as it is. */
int64_t fence_value(struct lab *lab, const struct lab_place *store);

/* In an actor; it lives as long as the actor. */
struct fence *fence_open(struct lab *lab, const struct lab_place *store);
/* token 0: the store does not check. false: refused, nothing was done. */
bool fence_read(struct fence *fence, uint64_t token, int64_t *value);
bool fence_write(struct fence *fence, uint64_t token, int64_t value);

#endif
