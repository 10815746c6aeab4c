/*
 * What a refusal of the server means: its error code, whether the request may
 * have been carried out in spite of it, and what the user can do. This unit
 * sends nothing. A function that returns a code has set the error message,
 * unless noted.
 */
#ifndef HF_ETCD_REFUSAL_H
#define HF_ETCD_REFUSAL_H

#include "net/grpc/grpc.h"

struct etcd;

#define ET_ADVICE 160

/* Returns true if the message of the server's status contains this string. */
bool hf__et_says(const struct grpc_call *, const char *text);
/* Returns the code for the server's status; sets no error message. */
int hf__et_code_of(const struct grpc_call *);
/* Writes which right the user lacks, or "", and returns `text`. */
const char *hf__et_advice(const struct etcd *, const struct grpc_call *,
                          char text[ET_ADVICE]);
/* Returns the code of a request that was refused and not carried out. */
int hf__et_refusal(struct etcd *, const struct grpc_call *);
/* Returns true if the status leaves open whether the request was carried
 * out. */
bool hf__et_is_unsure(const struct grpc_call *);
/* Returns a code that ends the connection, if another member may accept the
 * request; otherwise 0. */
int hf__et_leave_member(struct etcd *, const struct grpc_call *);
/* Returns a code that ends the connection because an answer cannot be read:
 * EPROTO, or ENOMEM if memory was short. */
int hf__et_odd(struct etcd *);
/* Returns ENOMEM, which ends the connection. */
int hf__et_no_memory(struct etcd *);

#endif
