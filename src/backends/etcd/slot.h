/*
 * Helpers of the functions in the backend's table: they tell whether a request
 * can be sent now, and when the backend must be driven next.
 */
#ifndef HF_ETCD_SLOT_H
#define HF_ETCD_SLOT_H

#include "backends/backend.h"

struct etcd;

/* Returns true if there is no usable connection, or if requests already wait
 * for one. In both cases the caller must return HF__LATER. */
bool hf__et_is_down(struct etcd *);
/* Writes to the socket what was queued for this request, unless more requests
 * follow. */
void hf__et_sent(struct etcd *, const struct hf__req *);
hf__time hf__et_timeout(const struct etcd *);

#endif
