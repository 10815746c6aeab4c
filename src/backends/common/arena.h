/*
 * Memory for one answer of a server or for one query: pieces are taken one by
 * one, and freed all at once. A piece is valid until the next reset. One block
 * is kept, so that a usual answer allocates nothing. The total is bounded,
 * because the server may be hostile. All functions are called with the client's
 * mutex held.
 */
#ifndef HF_ARENA_H
#define HF_ARENA_H

#include "backends/backend.h"

#include <stddef.h>

struct hf__block;
struct hf__arena {
    const struct hf__core *core;
    hf_client *client;
    struct hf__block *blocks; /* newest first; a reset keeps the oldest */
    size_t used;              /* bytes taken since the last reset */
    size_t max;               /* upper bound of `used` */
};

/* Initializes an empty arena, from which at most `max` bytes can be taken
 * between two resets. */
void hf__arena_init(struct hf__arena *, const struct hf__core *, hf_client *,
                    size_t max);

/* Makes all pieces invalid. */
void hf__arena_reset(struct hf__arena *);

/* Frees all memory, including the block that a reset keeps. */
void hf__arena_fini(struct hf__arena *);

/* Returns a piece of this size, aligned for any type and not zeroed; or NULL if
 * there is no memory, or if the bound would be exceeded. */
void *hf__arena_take(struct hf__arena *, size_t);

/* Returns whether the bound is the likely reason why hf__arena_take() returned
 * NULL. */
bool hf__arena_is_full(const struct hf__arena *);

#endif
