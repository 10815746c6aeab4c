/*
 * The query for findings (HF__DIAGNOSE) about the server, its cluster and the
 * client's lease. Returns PENDING, or a result at once.
 */
#ifndef HF_ETCD_DIAGNOSE_H
#define HF_ETCD_DIAGNOSE_H

#include "backends/backend.h"

struct etcd;

int hf__et_diagnose(struct etcd *, struct hf__query *);

#endif
