/* A transaction, built on the stack. It refers to keys and values, and does not
 * copy them. */
#ifndef HF_ETCD_TXN_H
#define HF_ETCD_TXN_H

#include "etcd.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ET_OPS 64 /* of both branches together, at most */

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

/* Begins an empty transaction. Without conditions, the branch ET_THEN is
 * executed. */
void hf__et_txn(struct et_txn *);
/* Adds the condition that the key has this create revision, or does not exist
 * if `revision` is 0. ET_THEN is executed if all conditions are true. */
void hf__et_if_created(struct et_txn *, const char *key, size_t len,
                       int64_t revision);
/* Adds the condition that the key has this mod revision, or does not exist if
 * `revision` is 0. */
void hf__et_if_changed(struct et_txn *, const char *key, size_t len,
                       int64_t revision);
/* Adds a read of one key to a branch, whose operations are executed in the
 * order in which they were added. The answer contains no value (since etcd 3.7
 * also no lease), unless the caller clears keys_only in the range that is
 * returned. */
Etcd__Range *hf__et_range(struct et_txn *, enum et_branch, const char *key,
                          size_t len);
/* Adds a write of one key to a branch. */
void hf__et_put(struct et_txn *, enum et_branch, const char *key, size_t len,
                const char *value, size_t value_len, int64_t lease);
/* Adds the deletion of one key to a branch. */
void hf__et_delete(struct et_txn *, enum et_branch, const char *key,
                   size_t len);

/* Returns part i of the answer, or NULL if it does not exist or does not answer
 * a read. */
const Etcd__RangeAnswer *hf__et_ranged(const Etcd__TxnAnswer *, size_t i);
/* Returns part i of the answer, or NULL if it does not exist or does not answer
 * a deletion. */
const Etcd__DeleteAnswer *hf__et_deleted(const Etcd__TxnAnswer *, size_t i);

#endif
