/*
 * A call to the server: packs its message, reads the answer of a transaction,
 * and tells how a request about entries or a step of a query has failed.
 */
#ifndef HF_ETCD_EXCHANGE_H
#define HF_ETCD_EXCHANGE_H

#include "net/grpc/grpc.h"

#include "etcd.pb-c.h"

/* Packs the message into a call that is about to be started, or into a stream.
 * Returns 0 or HF_ENOMEM. */
int hf__et_pack(struct grpc_call *, const void *message);

/* True if the call has ended with an answer to what was asked. */
static inline bool hf__et_has_answer(const struct grpc_call *c)
{
    return c->end == GRPC_ANSWERED && c->status == GRPC_OK;
}

/* Returns the answer of a transaction, to be freed by hf__et_txn_free(); NULL:
 * it cannot be read. */
Etcd__TxnAnswer *hf__et_txn_read(const struct grpc_call *);
void hf__et_txn_free(const struct grpc_call *, Etcd__TxnAnswer *);

/*
 * Handles a call that has ended without an answer, or with one that makes no
 * sense. Calls failed() once, with a code: that of the server's refusal;
 * HF_ENOMEM or HF_EPROTO if the answer cannot be read; HF_ENOTOWNER if the
 * client's lease has ended (failed() then calls hf__et_lease_over()); or
 * HF_EUNKNOWN: the server may have done what was asked. can_repeat: the same
 * call may be sent again on this connection. Returns 0 or a code that ends the
 * connection, as failed() does.
 */
int hf__et_failed(struct grpc_call *c,
                  int (*failed)(struct grpc_call *, int code, bool can_repeat));

#endif
