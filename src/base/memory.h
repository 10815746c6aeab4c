/*
 * Memory by the hooks of a program, or by malloc where it has set none. The
 * hooks may be those of a client that does not exist yet, or any more.
 */
#ifndef HF_MEMORY_H
#define HF_MEMORY_H

#include <holdfast.h>
#include <stddef.h>

/* Zeroed; NULL: out of memory. */
void *hf__alloc_by(const hf_hooks *, size_t);
/* NULL is fine. */
void hf__free_by(const hf_hooks *, void *);

#endif
