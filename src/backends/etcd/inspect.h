/*
 * Queries about the entries of a name: inspect, which lists holders and
 * waiters; break, which deletes the entries of holders; and ask, which writes
 * the tokens of the holders that must be asked to release the lock. They return
 * PENDING, or a result at once.
 */
#ifndef HF_ETCD_INSPECT_H
#define HF_ETCD_INSPECT_H

#include "backends/backend.h"

struct etcd;

int hf__et_inspect(struct etcd *, struct hf__query *);

#endif
