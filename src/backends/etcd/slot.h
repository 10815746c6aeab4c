/*
 * What the slots of the backend's table have in common: may a request be sent
 * now, what is due once it was, and when the backend is to be called next.
 */
#ifndef HF_ETCD_SLOT_H
#define HF_ETCD_SLOT_H

#include "backends/backend.h"

struct etcd;

/* There is no connection, or requests wait for it: a slot answers LATER. */
bool hf__et_is_down(struct etcd *);
/* A slot has sent something for the request. */
void hf__et_sent(struct etcd *, const struct hf__req *);
hf__time hf__et_timeout(const struct etcd *);

#endif
