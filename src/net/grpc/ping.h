/*
 * PINGs ask whether the server is there. One is sent while calls are open and
 * the server is silent, or when the owner asks for one, but never so often that
 * the server would refuse them. The connection ends if nothing comes for
 * link.silence_ms after a PING, or if other bytes come but no answer to the
 * PING for several times as long.
 */
#ifndef HF_NET_GRPC_PING_H
#define HF_NET_GRPC_PING_H

#include "backends/backend.h"

struct grpc;

/* Sends a PING now, unless that would be too soon or the last one is not
 * answered yet. The owner may also call this. */
void hf__grpc_ping(struct grpc *, hf__time now);
/* Return when the next PING is due, and until when the last one must be
 * answered; HF__NEVER if there is none. */
hf__time hf__grpc_ping_at(const struct grpc *);
hf__time hf__grpc_pong_until(const struct grpc *);

extern const uint8_t hf__grpc_our_ping[8]; /* the payload of our PINGs */

#endif
