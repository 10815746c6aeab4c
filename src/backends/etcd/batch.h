/*
 * Renewals that are under way: a batch is over when all its parts were answered
 * and a keep-alive that was sent for it was confirmed. Then the core hears of
 * it.
 */
#ifndef HF_ETCD_BATCH_H
#define HF_ETCD_BATCH_H

#include "backends/backend.h"

struct etcd;
struct et_request;

/* Is the entry of that hold still ours, as far as we know? */
bool hf__et_item_is_held(const struct hf__renewal *);
/* These items have no other result yet: they get the code. */
void hf__et_batch_lose(struct hf__batch *, size_t from, size_t len, int code);
/* A part was answered: a code, or which of its items are gone. */
void hf__et_checked(const struct et_request *, int code, const bool *gone);
/* A keep-alive was confirmed. */
void hf__et_renew_kept(struct etcd *);
/* It will not be: those who wait for it hear the code. */
void hf__et_renew_failed(struct etcd *, int code);

#endif
