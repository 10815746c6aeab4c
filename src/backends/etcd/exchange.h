/*
 * A call to the server: packs its message, reads the answer of a transaction,
 * and tells how a request about entries or a step of a query has failed.
 */
#ifndef HF_ETCD_EXCHANGE_H
#define HF_ETCD_EXCHANGE_H

#include "net/grpc/grpc.h"

#include "etcd.pb-c.h"

/* Packs the message into a call that is about to be started, or into a stream.
 * 0, HF_ENOMEM. */
int hf__et_pack(struct grpc_call *, const void *message);

/* The call has ended with an answer to what was asked. */
static inline bool hf__et_has_answer(const struct grpc_call *c)
{
    return c->end == GRPC_ANSWERED && c->status == GRPC_OK;
}

/* The answer of a transaction, which hf__et_txn_free() frees; NULL: it cannot
 * be read. */
Etcd__TxnAnswer *hf__et_txn_read(const struct grpc_call *);
void hf__et_txn_free(const struct grpc_call *, Etcd__TxnAnswer *);

/*
 * The call has ended without an answer, or its answer makes no sense. Calls
 * failed() once. The code is that of the server's refusal, HF_ENOMEM or
 * HF_EPROTO if the answer cannot be read, HF_ENOTOWNER if the client's lease
 * has ended (failed() then calls hf__et_lease_over()), or HF_EUNKNOWN: the
 * server may have done what was asked. can_repeat: the same may be sent again
 * on this connection. failed() returns 0, or a code that ends the connection,
 * and so does this.
 */
int hf__et_failed(struct grpc_call *c,
                  int (*failed)(struct grpc_call *, int code, bool can_repeat));

#endif
