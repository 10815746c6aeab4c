/*
 * The backend's renew: one proof for all holds of the batch, which is answered
 * when all its parts are.
 */
#ifndef HF_ZK_RENEW_H
#define HF_ZK_RENEW_H

#include "zookeeper.h"

int hf__zk_renew(void *self, struct hf__batch *);
void hf__zk_renew_fini(struct zk *);

#endif
