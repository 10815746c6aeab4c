/*
 * Writes of a holder: a value beside its lock, and the mark of a writer that
 * only reads from now on. Both are about a hold, so neither waits for a
 * connection. Returns PENDING, or a result at once.
 */
#ifndef HF_ETCD_PUT_H
#define HF_ETCD_PUT_H

#include "backends/backend.h"

struct etcd;

int hf__et_put_value(struct etcd *, struct hf__query *);
int hf__et_downgrade(struct etcd *, struct hf__query *);

#endif
