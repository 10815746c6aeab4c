/*
 * Renewals under way. A batch ends when all its parts have ended, and a
 * keep-alive is confirmed that was sent with the batch or later. If no such
 * keep-alive can still be confirmed, the batch fails. At its end the batch is
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
/* Sets `code` as the result of these items, except items that already have a
 * result other than HF__DONE. */
void hf__et_batch_lose(struct hf__batch *, size_t from, size_t len, int code);
/* Handles the end of one part of a batch. `code` is the result of the part. If
 * it is 0, gone[] tells which entries of the part no longer exist. */
void hf__et_checked(const struct et_request *, int code, const bool *gone);
/* Handles the confirmation of a keep-alive: ends the wait of the batches that
 * waited for it. */
void hf__et_renew_kept(struct etcd *);
/* Handles the end of a connection, or of its stream of keep-alives: ends the
 * wait of all batches, because no keep-alive will be confirmed. `code` becomes
 * the result of the items of these batches. */
void hf__et_renew_failed(struct etcd *, int code);

#endif
