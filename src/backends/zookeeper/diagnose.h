/*
 * The query for findings (HF__DIAGNOSE). Returns an outcome, or PENDING.
 */
#ifndef HF_ZK_DIAGNOSE_H
#define HF_ZK_DIAGNOSE_H

#include "zookeeper.h"

int hf__zk_diagnose_query(struct zk *, struct hf__query *);

#endif
