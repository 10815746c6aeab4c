/*
 * A number in a store, protected as docs/fencing.md says: the store remembers
 * the highest token that it has seen in any access, reads included, and refuses
 * a lower token. Check and access are one step.
 */
#ifndef HF_LAB_FENCE_H
#define HF_LAB_FENCE_H

#include "../runner/place.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

struct fence;

/* In the runner: creates the number, in Redis, in MariaDB, or in a file (store
 * is NULL, or a file). */
void fence_make(struct lab *lab, const struct lab_place *store, int64_t value);
/* In the runner: returns the current number. */
int64_t fence_value(struct lab *lab, const struct lab_place *store);

/* In an actor: opens the number. The connection or file stays open until the
 * actor ends. */
struct fence *fence_open(struct lab *lab, const struct lab_place *store);
/* Reads the number. With token 0 the store does not check. Returns false if the
 * store refused the token. */
bool fence_read(struct fence *fence, uint64_t token, int64_t *value);
/* Writes the number in the same way. If the store refused, nothing was
 * written. */
bool fence_write(struct fence *fence, uint64_t token, int64_t value);

#endif
