/*
 * Memory allocation and logging of a client, through the hooks of its program.
 * Any thread may call these functions, with or without mutexes.
 */
#ifndef HF_CORE_HOOKS_H
#define HF_CORE_HOOKS_H

#include <holdfast.h>
#include <stddef.h>

void *hf__alloc(hf_client *, size_t); /* zeroed, or NULL if out of memory */
void hf__free(hf_client *, void *);   /* NULL is allowed */
char *hf__strdup(hf_client *, const char *);
/* Passes a message to the program's log hook, if it has one. */
void hf__log(hf_client *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
