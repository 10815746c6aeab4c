/*
 * The queue of a lock as a server stores it: which entries hold the lock, and
 * to which holders a break or an ask applies. Pure.
 */
#ifndef HF_ORDER_H
#define HF_ORDER_H

#include "backends/backend.h"

#include <stdbool.h>

/* What is known of the entries so far; {0} before the first one. */
struct hf__order {
    bool any, writer;
};

/* Adds an entry, and returns whether it holds the lock. The entries must be
 * added in order, the oldest first. An entry of a mutex counts as a writer.
 * `lets_readers_in` says that the entry belongs to a writer that has been
 * downgraded. */
bool hf__order_holds(struct hf__order *, bool reads, bool lets_readers_in);

/* Returns whether the query applies to this holder. */
bool hf__order_means(const struct hf__query *, uint64_t token,
                     const char *owner);
/* Returns whether the query applies to every holder. */
bool hf__order_means_all(const struct hf__query *);

#endif
