/*
 * The queue of a lock as a server keeps it: which entries hold the lock, and
 * which holders a break or an ask means. Pure.
 */
#ifndef HF_ORDER_H
#define HF_ORDER_H

#include "backends/backend.h"

#include <stdbool.h>

/* What the entries so far were; {0} before the first one. */
struct hf__order {
    bool any, writer;
};

/* Takes the next entry, the oldest first, and returns whether it holds the
 * lock. An entry of a mutex counts as a writer. lets_readers_in: the entry is
 * that of a writer that has been downgraded. */
bool hf__order_holds(struct hf__order *, bool reads, bool lets_readers_in);

/* Returns whether the query means this holder. */
bool hf__order_means(const struct hf__query *, uint64_t token,
                     const char *owner);
/* Returns whether the query means every holder. */
bool hf__order_means_all(const struct hf__query *);

#endif
