/*
 * Batches of renewals. hf__rd_renew() is a slot of the backend's table. A batch
 * is sent in chunks, one script each, and is finished when its last chunk has
 * been answered or lost. cmd.c passes replies and failures here.
 */
#ifndef HF_REDIS_RENEW_H
#define HF_REDIS_RENEW_H

#include "flights.h"

#define RD_RENEW_CHUNK 256

int hf__rd_renew(void *, struct hf__batch *);

/* Sends the renewal of `len` items of the batch, which are locks of the same
 * kind. Returns 0 or HF_ENOMEM. */
int hf__rd_renew_chunk(struct redis *, struct hf__batch *, uint32_t first,
                       uint32_t len);

/* Handles the reply to a chunk. Returns 0 or HF_EPROTO. */
int hf__rd_renew_reply(struct redis *, const struct rd_flight *,
                       const struct rd_node *);
/* Notes that a chunk was answered or lost. The last chunk finishes the
 * batch. */
void hf__rd_renew_landed(struct redis *, struct hf__batch *);
/* Sets the results of all items of a failed chunk to `code`. */
void hf__rd_renew_failed(struct redis *, const struct rd_flight *, int code);

#endif
