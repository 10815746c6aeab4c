/*
 * What it means when the server refuses a request: which code of holdfast's it
 * becomes, whether the request may have been done all the same, and what the
 * user can do about it. It sends nothing. Functions that return a code have set
 * its text.
 */
#ifndef HF_ETCD_REFUSAL_H
#define HF_ETCD_REFUSAL_H

#include "net/grpc/grpc.h"

struct etcd;

#define ET_ADVICE 160

/* Does the server's text contain this one? */
bool hf__et_says(const struct grpc_call *, const char *text);
/* Without a text. */
int hf__et_code_of(const struct grpc_call *);
/* What the user lacks, or "". Returns text. */
const char *hf__et_advice(const struct etcd *, const struct grpc_call *,
                          char text[ET_ADVICE]);
/* For a request that was refused for good. */
int hf__et_refusal(struct etcd *, const struct grpc_call *);
/* The server refuses the request, and may have done it all the same. */
bool hf__et_is_unsure(const struct grpc_call *);
/* A code that ends the connection, if another member may know better; else 0.
 */
int hf__et_leave_member(struct etcd *, const struct grpc_call *);
/* These end the connection. An answer cannot be read: EPROTO, or ENOMEM if that
 * was because memory was short. */
int hf__et_odd(struct etcd *);
int hf__et_no_memory(struct etcd *);

#endif
