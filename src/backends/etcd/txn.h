/* A transaction, built on the stack. It refers to keys and values, and does not
 * copy them. */
#ifndef HF_ETCD_TXN_H
#define HF_ETCD_TXN_H

#include "etcd.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ET_OPS 64 /* most operations in both branches together */

enum et_branch { ET_THEN, ET_ELSE };

struct et_txn {
    Etcd__Txn m;
    size_t len;
    struct et_txn_op {
        Etcd__Op op;
        union {
            Etcd__Range range;
            Etcd__Put put;
            Etcd__Delete delete;
        };
    } op[ET_OPS];
    Etcd__Op *branch[2][ET_OPS];
    Etcd__Compare compare[ET_OPS], *compares[ET_OPS];
};

/* Begins an empty transaction: no conditions, so ET_THEN is done. */
void hf__et_txn(struct et_txn *);
/* Add conditions, which must all be true: the create revision, or the mod
 * revision, of a key has this value. Revision 0: the key does not exist. */
void hf__et_if_created(struct et_txn *, const char *key, size_t len,
                       int64_t revision);
void hf__et_if_changed(struct et_txn *, const char *key, size_t len,
                       int64_t revision);
/* Add operations to a branch, which are executed in this order. A range reads
 * one key and returns no value (since etcd 3.7 also no lease), unless the
 * caller changes the message that is returned. */
Etcd__Range *hf__et_range(struct et_txn *, enum et_branch, const char *key,
                          size_t len);
void hf__et_put(struct et_txn *, enum et_branch, const char *key, size_t len,
                const char *value, size_t value_len, int64_t lease);
void hf__et_delete(struct et_txn *, enum et_branch, const char *key,
                   size_t len);

/* Return part i of the answer; NULL: it does not exist, or is of another
 * type. */
const Etcd__RangeAnswer *hf__et_ranged(const Etcd__TxnAnswer *, size_t i);
const Etcd__DeleteAnswer *hf__et_deleted(const Etcd__TxnAnswer *, size_t i);

#endif
