/*
 * A call of which nothing is left when it has ended: a request about entries,
 * a step of a query. This unit reads how it has ended and calls one of two
 * functions of its owner, exactly once.
 */
#ifndef HF_ETCD_EXCHANGE_H
#define HF_ETCD_EXCHANGE_H

#include "net/grpc/grpc.h"

#include "etcd.pb-c.h"

struct et_exchange {
    /* The server has answered. Returns 0, HF_EPROTO if the answer makes no
     * sense (failed() follows), or a code that ends the connection. */
    int (*answered)(struct grpc_call *, const uint8_t *, size_t len);
    /* The server has not done what was asked. The code is that of its refusal,
     * HF_ENOMEM or HF_EPROTO if its answer cannot be read, HF_ENOTOWNER if the
     * client's lease has ended (failed() calls hf__et_lease_over()), or
     * HF_EUNKNOWN: it may have done it. can_repeat: the same may be sent again
     * on this connection. Returns 0, or a code that ends the connection. */
    int (*failed)(struct grpc_call *, int code, bool can_repeat);
};

/* For method.over: returns what that returns. */
int hf__et_exchange_over(struct grpc_call *, const struct et_exchange *);
/* Reads a transaction's answer and passes it to take(), whose result it
 * returns. HF_EPROTO: it cannot be read. */
int hf__et_txn_read(struct grpc_call *, const uint8_t *, size_t len,
                    int (*take)(struct grpc_call *, const Etcd__TxnAnswer *));

#endif
