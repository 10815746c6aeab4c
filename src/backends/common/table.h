/*
 * A hash table keyed by a string and a number, for watches, channels and names.
 * An entry begins with a struct hf__keyed and is followed by its string. The
 * table allocates and frees the entries; a pointer to an entry is valid until
 * that entry is removed. All functions are called with the client's mutex held.
 */
#ifndef HF_TABLE_H
#define HF_TABLE_H

#include "backends/backend.h"

#include <stddef.h>

struct hf__keyed {
    struct hf__keyed *next; /* the next entry in the same bucket */
    uint32_t hash;
    uint16_t number;
    uint16_t len;
    const char *text; /* terminated */
};

struct hf__table {
    const struct hf__core *core;
    hf_client *client;
    struct hf__keyed **bucket;
    size_t cap, len;
};

void *hf__table_find(const struct hf__table *, uint16_t number,
                     const char *text, size_t len); /* NULL if not found */
/* Adds a zeroed entry of this size, followed by a copy of the string. Returns
 * NULL if there is no memory. */
void *hf__table_add(struct hf__table *, size_t size, uint16_t number,
                    const char *text, size_t len);
/* Removes the entry and frees it. */
void hf__table_remove(struct hf__table *, void *keyed);
/* Returns the entry after `keyed`, or the first entry if `keyed` is NULL. No
 * entry may be added between two calls. */
void *hf__table_next(const struct hf__table *, const void *keyed);
/* Removes and frees all entries. */
void hf__table_fini(struct hf__table *);

#endif
