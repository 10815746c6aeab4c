/*
 * Batches of renewals: hf__rd_renew() is the slot of the backend's table. A
 * batch goes out in chunks, one script each, and is reported when the last one
 * is answered or lost. cmd.c passes answers and failures on.
 */
#ifndef HF_REDIS_RENEW_H
#define HF_REDIS_RENEW_H

#include "flights.h"

#define RD_RENEW_CHUNK 256

int hf__rd_renew(void *, struct hf__batch *);

int hf__rd_renew_chunk(struct redis *, struct hf__batch *, uint32_t first,
                       uint32_t len);

/* The answer: 0, or HF_EPROTO. */
int hf__rd_renew_reply(struct redis *, const struct rd_flight *,
                       const struct rd_node *);
/* A chunk is over. */
void hf__rd_renew_landed(struct redis *, struct hf__batch *);
/* No answer will come for these items. */
void hf__rd_renew_failed(struct redis *, const struct rd_flight *, int code);

#endif
