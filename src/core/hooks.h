/*
 * What a client does by the hooks of its program: memory and log. Any thread
 * may call these, with or without mutexes.
 */
#ifndef HF_CORE_HOOKS_H
#define HF_CORE_HOOKS_H

#include <holdfast.h>
#include <stddef.h>

void *hf__alloc(hf_client *, size_t); /* zeroed */
void hf__free(hf_client *, void *);   /* NULL is fine */
char *hf__strdup(hf_client *, const char *);
/* A line for the program's log, if it has one. */
void hf__log(hf_client *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
