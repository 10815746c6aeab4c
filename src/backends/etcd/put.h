/*
 * Writes of a holder: a value for hf_lock_put, and the mark of a writer that is
 * downgraded. The functions return PENDING, or a result at once. They never
 * return LATER, because the query's line is valid only during the call.
 */
#ifndef HF_ETCD_PUT_H
#define HF_ETCD_PUT_H

#include "backends/backend.h"

struct etcd;

int hf__et_put_value(struct etcd *, struct hf__query *);
int hf__et_downgrade(struct etcd *, struct hf__query *);

#endif
