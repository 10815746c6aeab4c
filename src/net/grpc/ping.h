/*
 * PINGs find out whether the server still answers. While calls are open, a PING
 * is sent if the server is silent or the owner requests one, but never so often
 * that the server would refuse it. After a PING the connection ends in two
 * cases: no bytes arrive for link.silence_ms, or other bytes arrive but the
 * answer to the PING does not arrive for several times as long.
 */
#ifndef HF_NET_GRPC_PING_H
#define HF_NET_GRPC_PING_H

#include "backends/backend.h"

struct grpc;

/* Sends a PING now if calls are open, unless that would be too soon or the last
 * PING is not answered yet. The owner may also call this. */
void hf__grpc_ping(struct grpc *, hf__time now);
/* Returns when the next PING is due, or HF__NEVER. */
hf__time hf__grpc_ping_at(const struct grpc *);
/* Returns until when the last PING must be answered, or HF__NEVER. */
hf__time hf__grpc_pong_until(const struct grpc *);

extern const uint8_t hf__grpc_our_ping[8]; /* the payload of our PINGs */

#endif
