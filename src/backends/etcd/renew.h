/*
 * The renewal slot: one keep-alive renews the lease, and with it every hold.
 * Beside it transactions check whether the entries are still there. A renewal
 * is over when both were answered (batch.h).
 */
#ifndef HF_ETCD_RENEW_H
#define HF_ETCD_RENEW_H

#include "backends/backend.h"

int hf__et_renew(void *, struct hf__batch *);

#endif
