/*
 * Memory for one answer of a server or one query: taken piece by piece, freed
 * all at once. A piece is valid until the next reset. One block is kept, so
 * that a usual answer allocates nothing. The total has a bound, because the
 * server may be hostile. Called with the client's mutex held.
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
    size_t max;               /* the bound of `used` */
};

/* Begins an empty arena: at most `max` bytes can be taken between two resets.
 * reset() makes all pieces invalid; fini() also frees the block that is
 * kept. */
void hf__arena_init(struct hf__arena *, const struct hf__core *, hf_client *,
                    size_t max);
void hf__arena_reset(struct hf__arena *);
void hf__arena_fini(struct hf__arena *);
/* Returns a piece of that size, aligned for any type and not zeroed; NULL if
 * there is no memory, or if the bound would be exceeded. */
void *hf__arena_take(struct hf__arena *, size_t);
/* Returns whether the bound was the likely reason of a NULL. */
bool hf__arena_is_full(const struct hf__arena *);

#endif
