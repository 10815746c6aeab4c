/*
 * What all calls to the server share: packing a message, reading the answer to
 * a transaction, and finding out how a request about entries or a step of a
 * query has failed.
 */
#ifndef HF_ETCD_EXCHANGE_H
#define HF_ETCD_EXCHANGE_H

#include "net/grpc/grpc.h"

#include "etcd.pb-c.h"

/* Packs the message into a call that is about to be started, or into a stream.
 * Returns 0 or HF_ENOMEM. */
int hf__et_pack(struct grpc_call *, const void *message);

/* Returns true if the server has answered the call with the status OK. */
static inline bool hf__et_has_answer(const struct grpc_call *c)
{
    return c->end == GRPC_ANSWERED && c->status == GRPC_OK;
}

/* Returns the answer of a transaction, which must be freed by
 * hf__et_txn_free(), or NULL if the answer cannot be read. */
Etcd__TxnAnswer *hf__et_txn_read(const struct grpc_call *);
void hf__et_txn_free(const struct grpc_call *, Etcd__TxnAnswer *);

/*
 * Handles a call that has ended without an answer, or with an answer that
 * cannot be read. Calls failed() once, with a code: that of the server's
 * refusal; HF_ENOMEM or HF_EPROTO if the answer cannot be read; HF_ENOTOWNER if
 * the client's lease has ended (failed() must then call hf__et_lease_over());
 * or HF_EUNKNOWN if the server may have done what was asked. `can_repeat` is
 * true if the same call may be sent again on this connection. Both
 * hf__et_failed() and failed() return 0, or a code that ends the connection.
 */
int hf__et_failed(struct grpc_call *c,
                  int (*failed)(struct grpc_call *, int code, bool can_repeat));

#endif
