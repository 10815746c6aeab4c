/*
 * The query for the names that are in use: all keys below ROOT, a page at a
 * time, in their own order. PENDING, or a result at once.
 */
#ifndef HF_ETCD_LIST_H
#define HF_ETCD_LIST_H

#include "backends/backend.h"

struct etcd;

int hf__et_list(struct etcd *, struct hf__query *);

#endif
