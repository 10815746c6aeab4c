/*
 * The backend's slot renew. One keep-alive renews the lease, and with it every
 * hold. Transactions check whether the entries still exist. A renewal ends when
 * the keep-alive and all transactions were answered (batch.h).
 */
#ifndef HF_ETCD_RENEW_H
#define HF_ETCD_RENEW_H

#include "backends/backend.h"

int hf__et_renew(void *, struct hf__batch *);

#endif
