/*
 * PINGs: is the server there? One is sent while calls are open and the server
 * is silent, or if the owner wants one, but not so often that the server would
 * take offence. A silence of link.silence_ms after it ends the connection; so
 * does a PING that is not answered for long though other bytes come.
 */
#ifndef HF_NET_GRPC_PING_H
#define HF_NET_GRPC_PING_H

#include "backends/backend.h"

struct grpc;

/* Sends one now, unless the server would take offence. For the owner, too. */
void hf__grpc_ping(struct grpc *, hf__time now);
/* When the next one is due; when one that was sent must be answered. */
hf__time hf__grpc_ping_at(const struct grpc *);
hf__time hf__grpc_pong_until(const struct grpc *);

extern const uint8_t hf__grpc_our_ping[8]; /* what it carries */

#endif
