/*
 * Memory of the lab. Each function dies if there is none.
 */
#ifndef HF_LAB_MEMORY_H
#define HF_LAB_MEMORY_H

#include <stddef.h>

/* Zeroed memory that is shared with actors and workers that are forked
 * later. */
void *lab_share(size_t size);
/* Unmaps what lab_share() returned. */
void lab_unshare(void *memory, size_t size);

/* Allocations that do not fail: they call lab_die(). */
void *lab_alloc(size_t size);
/* Returns the memory with room for so many elements; the new ones are not
 * zeroed. */
void *lab_grow(void *memory, size_t count, size_t size);

#endif
