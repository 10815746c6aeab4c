/*
 * Renewals under way. A batch ends when all its parts were answered and a
 * keep-alive that was sent for the batch was confirmed. Then the batch is
 * reported to the core.
 */
#ifndef HF_ETCD_BATCH_H
#define HF_ETCD_BATCH_H

#include "backends/backend.h"

struct etcd;
struct et_request;

/* Returns true if, as far as the client knows, the entry of the item's hold
 * still exists. */
bool hf__et_item_is_held(const struct hf__renewal *);
/* Sets the code as the result of these items, except items that already have
 * another result. */
void hf__et_batch_lose(struct hf__batch *, size_t from, size_t len, int code);
/* Handles the end of one part of a batch. `code` is the result of the part. If
 * it is 0, gone[] tells which entries of the part no longer exist. */
void hf__et_checked(const struct et_request *, int code, const bool *gone);
/* Handles the confirmation of a keep-alive: ends the wait of the batches that
 * waited for it. */
void hf__et_renew_kept(struct etcd *);
/* Handles the end of a connection, on which no keep-alive will be confirmed any
 * longer: ends the wait of all batches, with the code as the result of their
 * items. */
void hf__et_renew_failed(struct etcd *, int code);

#endif
