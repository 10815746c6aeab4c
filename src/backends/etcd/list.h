/*
 * The query for the names in use. It reads all keys below ROOT, a page at a
 * time, in the order of the keys. Returns PENDING, or a result at once.
 */
#ifndef HF_ETCD_LIST_H
#define HF_ETCD_LIST_H

#include "backends/backend.h"

struct etcd;

int hf__et_list(struct etcd *, struct hf__query *);

#endif
