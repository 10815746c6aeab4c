/*
 * Memory by the hooks of a program, or by malloc if it has set none. Takes the
 * hooks and not the client, which might not exist yet or might have been freed.
 */
#ifndef HF_MEMORY_H
#define HF_MEMORY_H

#include <holdfast.h>
#include <stddef.h>

/* Returns zeroed memory; NULL if out of memory. */
void *hf__alloc_by(const hf_hooks *, size_t);
/* Frees what hf__alloc_by() returned. NULL is allowed. */
void hf__free_by(const hf_hooks *, void *);

#endif
