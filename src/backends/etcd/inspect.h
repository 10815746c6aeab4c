/*
 * Queries about the entries of a name: who holds it and who waits; break, which
 * deletes entries; and hf_ask, which writes the tokens of holders that are to
 * let go. PENDING, or a result at once.
 */
#ifndef HF_ETCD_INSPECT_H
#define HF_ETCD_INSPECT_H

#include "backends/backend.h"

struct etcd;

/* INSPECT, BREAK, ASK. */
int hf__et_inspect(struct etcd *, struct hf__query *);

#endif
