/*
 * Allocates memory through the hooks of a program, or through malloc() if the
 * program has set none. The functions take the hooks instead of the client,
 * because the client might not exist yet or might have been freed.
 */
#ifndef HF_MEMORY_H
#define HF_MEMORY_H

#include <holdfast.h>
#include <stddef.h>

/* Returns zeroed memory, or NULL if out of memory. */
void *hf__alloc_by(const hf_hooks *, size_t);
/* Frees what hf__alloc_by() returned. NULL is allowed. */
void hf__free_by(const hf_hooks *, void *);

#endif
