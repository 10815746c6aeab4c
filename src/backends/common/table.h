/*
 * A hash table of what is found by a text and a number beside it: the keys that
 * somebody waits for. An entry begins with a struct hf__keyed, and ends with
 * the text. The table allocates the entries and frees them; a pointer to one is
 * valid until it is removed. Called with the client's mutex held.
 */
#ifndef HF_TABLE_H
#define HF_TABLE_H

#include "backends/backend.h"

#include <stddef.h>

struct hf__keyed {
    struct hf__keyed *next; /* of the same bucket */
    uint32_t hash;
    uint16_t number;
    uint16_t len;
    const char *text; /* terminated too */
};

struct hf__table {
    const struct hf__core *core;
    hf_client *client;
    struct hf__keyed **bucket;
    size_t cap, len;
};

void *hf__table_find(const struct hf__table *, uint16_t number,
                     const char *text, size_t len); /* or NULL */
/* A new one of that size, zeroed, with its text behind it; NULL: out of
 * memory. */
void *hf__table_add(struct hf__table *, size_t size, uint16_t number,
                    const char *text, size_t len);
/* And frees it. */
void hf__table_remove(struct hf__table *, void *keyed);
/* The one after it; NULL: the first. None may be added in between. */
void *hf__table_next(const struct hf__table *, const void *keyed);
/* Frees all. */
void hf__table_fini(struct hf__table *);

#endif
