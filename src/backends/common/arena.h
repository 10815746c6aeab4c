/*
 * Memory for one answer of a server: taken piece by piece, given back all at
 * once. The connection that gathers the answer owns the arena; a piece is valid
 * until the next reset. A block is kept, so that a usual answer allocates
 * nothing, and the total has a bound, because the server may be hostile. Called
 * with the client's mutex held.
 */
#ifndef HF_ARENA_H
#define HF_ARENA_H

#include "backends/backend.h"

#include <stddef.h>

struct hf__block;
struct hf__arena {
    const struct hf__core *core;
    hf_client *client;
    struct hf__block *blocks; /* the newest first; one is kept */
    size_t used;              /* since the last reset, in all blocks */
    size_t max;               /* of used */
};

void hf__arena_init(struct hf__arena *, const struct hf__core *, hf_client *,
                    size_t max);
void hf__arena_reset(struct hf__arena *);
void hf__arena_fini(struct hf__arena *);
/* Aligned for anything, not zeroed; NULL: out of memory, or over the bound. */
void *hf__arena_take(struct hf__arena *, size_t);
/* There was none: because of the bound, as far as one can tell. */
bool hf__arena_is_full(const struct hf__arena *);

#endif
