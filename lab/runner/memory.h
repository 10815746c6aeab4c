/*
 * Memory of the lab. Functions that allocate die if there is no memory.
 */
#ifndef HF_LAB_MEMORY_H
#define HF_LAB_MEMORY_H

#include <stddef.h>

/* Returns zeroed memory, which is shared with actors and workers that are
 * forked later. */
void *lab_share(size_t size);
/* Unmaps what lab_share() returned. */
void lab_unshare(void *memory, size_t size);

/* Returns zeroed memory. */
void *lab_alloc(size_t size);
/* Returns the memory, resized to `count' elements. New elements are not
 * zeroed. */
void *lab_grow(void *memory, size_t count, size_t size);

#endif
