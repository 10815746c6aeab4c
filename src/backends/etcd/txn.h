/* A transaction, put together on the stack. Refers to keys and values, and does
 * not copy them. */
#ifndef HF_ETCD_TXN_H
#define HF_ETCD_TXN_H

#include "etcd.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ET_OPS 64 /* operations in both branches together, at most */

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
/* Conditions, of which all must be true. Revision 0: the key does not exist. */
void hf__et_if_created(struct et_txn *, const char *key, size_t len,
                       int64_t revision);
void hf__et_if_changed(struct et_txn *, const char *key, size_t len,
                       int64_t revision);
/* Operations of a branch, done in this order. A range is about one key and
 * returns no value (etcd 3.7: and no lease), unless the caller changes what is
 * returned. */
Etcd__Range *hf__et_range(struct et_txn *, enum et_branch, const char *key,
                          size_t len);
void hf__et_put(struct et_txn *, enum et_branch, const char *key, size_t len,
                const char *value, size_t value_len, int64_t lease);
void hf__et_delete(struct et_txn *, enum et_branch, const char *key,
                   size_t len);

/* Returns part i of the answer; NULL if it does not exist or is of another
 * type. */
const Etcd__RangeAnswer *hf__et_ranged(const Etcd__TxnAnswer *, size_t i);
const Etcd__DeleteAnswer *hf__et_deleted(const Etcd__TxnAnswer *, size_t i);

#endif
