/*
 * Interprets the children of a lock's node: tells by the name of a child what
 * it is (an entry of Curator, kazoo or holdfast, or a stranger), how entries
 * are ordered, and which one a waiter watches. Pure.
 *
 *     _c_<uuid>-lock-<seq>      Curator's mutex. "_c_<uuid>-" may be missing in
 *     _c_<uuid>-__READ__<seq>   these five; go-zookeeper's uuid has no hyphens
 *     _c_<uuid>-__WRIT__<seq>
 *     _c_<uuid>-lease-<seq>     below leases
 *     _c_<uuid>-latch-<seq>     LeaderLatch
 *     <32 hex>__lock__<seq>     kazoo's Lock and WriteLock
 *     <32 hex>__rlock__<seq>    kazoo's ReadLock
 *     lock                      the unfair mutex
 *     _h_<uuid>                 the holder of an unfair mutex, by holdfast
 *     locks, leases             the two nodes of a semaphore
 *     latch                     the count of a latch
 *     _d_<uuid>-<request>       the mark of a set or down of a latch
 *
 * Sequences have 10 digits: the server writes an int32, with a minus sign after
 * it has wrapped around. They are compared as numbers. At 2^31-1 the server's
 * counter stops, but of several creates that are in flight together the first
 * gets that number and the others wrap. So every sequence with a minus sign
 * counts as 2^31-1, and the czxid breaks the tie.
 *
 * All other children are *strangers*. Most of them are ignored, because no
 * known client takes them for entries. Each of the following may be an entry of
 * another client, or the node of another lock whose name continues below ours.
 * The name does not tell which, but an entry is ephemeral and the node of a
 * lock is not. So the client must request the child's stat
 * (hf__zk_entry_guess):
 *
 *     ...lock-<seq>, ...__lock__<seq> and so on: Curator and kazoo look only
 *                               at the end of a name
 *     x-<session>-<seq>         ZooKeeper's own recipe (WriteLock, zoo_lock.c)
 *     <32 hex>                  a lease of kazoo's semaphore
 *     0000000012, -x ...        Curator sorts all children by what follows
 *                               its stem, or by the whole name, and waits for
 *                               those before its own sequence. (Letters sort
 *                               after digits.)
 */
#ifndef HF_ZK_ENTRY_H
#define HF_ZK_ENTRY_H

#include "backends/common/about.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zk_form {
    ZK_FORM_NONE = 0, /* no entry: a stranger, or another lock's node */
    ZK_FORM_LOCK,
    ZK_FORM_READ,
    ZK_FORM_WRITE,
    ZK_FORM_LEASE,
    ZK_FORM_LEADER,
    ZK_FORM_KAZOO_LOCK,
    ZK_FORM_KAZOO_READ,
    ZK_FORM_UNFAIR,
    ZK_FORM_HOLDER,
    ZK_FORM_SEMAPHORE, /* one of the two nodes of a semaphore */
    ZK_FORM_LATCH,
    ZK_FORM_MARK,
    ZK_FORM_KAZOO_LEASE, /* this form and the next belong to strangers only */
    ZK_FORM_SORTED,      /* no entry, but Curator sorts it before ours */
};

#define ZK_SEQ_LAST INT32_MAX

struct zk_entry {
    enum zk_form form;
    int64_t seq; /* the sequence, at most ZK_SEQ_LAST; 0 if the form has none;
                    -1 if the entry is before all sequences */
    int64_t czxid;
    const char *name; /* the whole name, as given */
    const char *uuid; /* part of name, not terminated; "" if none */
    size_t uuid_len;  /* 36 for Curator and holdfast, 32 for kazoo, or 0 */
};

#define ZK_CHILD_MAX 64 /* room for the name of a child of a known form */

/* Parses the name of a child. The entry then points into the name. Returns
 * false if the name has no known form. Sets the entry's czxid to 0, which means
 * unknown. */
bool hf__zk_entry_parse(const char *child, struct zk_entry *);

/* The kind of lock for which the children are judged. */
enum zk_rule {
    ZK_RULE_MUTEX,
    ZK_RULE_WRITE,
    ZK_RULE_READ,
    ZK_RULE_UNFAIR, /* only an entry of the form HOLDER blocks; most other forms
                       belong to other kinds of lock */
};

/* Returns, for a stranger, whether a client with that rule and sequence would
 * count it as an entry if it is ephemeral. ZK_SEQ_LAST represents the end of
 * the queue. If the function returns true, the entry refers to the name. */
bool hf__zk_entry_guess(const char *child, enum zk_rule, int64_t seq,
                        struct zk_entry *);

/* Compares two entries by their sequences, then by their czxids if both are
 * known. Returns 0 if the order is unknown. */
int hf__zk_entry_order(const struct zk_entry *, const struct zk_entry *);

#define ZK_UUID_MAX (HF__UUID_LEN + 1)
#define ZK_PREFIX_MAX 64

/* Writes the name with which an entry is created, without the sequence. The
 * uuid is from hf__uuid(); forms of kazoo omit its hyphens. */
void hf__zk_entry_prefix(enum zk_form, const char *uuid,
                         char out[ZK_PREFIX_MAX]);

/* The value of an index in struct zk_place that refers to no child. */
#define ZK_NOBODY SIZE_MAX

struct zk_place {
    size_t ahead;    /* number of entries before mine that block it */
    size_t watch;    /* index of the last of those entries */
    size_t mismatch; /* index of an entry of another kind of lock */
    /* Index of the first child that counts only if it is ephemeral, while that
     * is unknown. `ahead` does not include this child, and there may be more
     * such children. */
    size_t stranger;
    /* Index of the first child with the sequence of `mine` and an unknown
     * czxid. `ahead` includes this child. */
    size_t tied;
    bool here; /* `mine` is one of the children */
};

/* Returns the czxid of a child, negated if the child is not ephemeral, or 0 if
 * nothing is known of the child. */
typedef int64_t zk_czxid_fn(const void *arg, const char *child);

/*
 * Finds the place of `mine` among the children of its node. If mine->name is
 * NULL, the place is after all children. `czxid` may be NULL.
 */
void hf__zk_place(char *const *child, size_t len, const struct zk_entry *mine,
                  enum zk_rule, zk_czxid_fn *czxid, const void *arg,
                  struct zk_place *);

#endif
