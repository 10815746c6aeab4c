/*
 * The backend's renew: one proof for all holds of the batch, which is answered
 * when all its parts are. And HF__DOWNGRADE, which the next renewal repeats if
 * the answer was lost.
 */
#ifndef HF_ZK_RENEW_H
#define HF_ZK_RENEW_H

#include "zookeeper.h"

int hf__zk_renew(void *self, struct hf__batch *);
/* An outcome, or PENDING. */
int hf__zk_downgrade_query(struct zk *, struct hf__query *);
void hf__zk_renew_fini(struct zk *);

#endif
