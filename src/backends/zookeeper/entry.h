/*
 * What a child of a lock's node is, by its name: Curator's forms, kazoo's and
 * ours; who is before whom, and whom to watch. Pure.
 *
 *     _c_<uuid>-lock-<seq>      Curator's mutex; its prefix may be missing in
 *     _c_<uuid>-__READ__<seq>   this and the next ones. go-zookeeper's uuid has
 *                               no hyphens
 *     _c_<uuid>-__WRIT__<seq>
 *     _c_<uuid>-lease-<seq>     below leases
 *     _c_<uuid>-latch-<seq>     LeaderLatch
 *     <32 hex>__lock__<seq>     kazoo's Lock and WriteLock
 *     <32 hex>__rlock__<seq>    kazoo's ReadLock
 *     lock                      the unfair mutex
 *     _h_<uuid>                 who has it, if it is one of ours
 *     locks, leases             of a semaphore
 *     latch                     the count of a latch
 *     _d_<uuid>-<request>       who counted a latch down
 *
 * Sequences are of 10 digits, as the server writes an int32, with a minus
 * where it went round. They are compared as numbers. At 2^31-1 the server stays
 * there, but for those that are in flight together: of them the first stays,
 * and the others go round. So all with a minus count as that number, and czxid
 * breaks the tie.
 *
 * All others are *strangers*. Most of them no known client counts as an entry,
 * and they are ignored. Some would be counted, but may as well be the node of
 * another lock, whose name goes on below ours. They count if they are
 * ephemeral, which has to be requested (hf__zk_entry_guess):
 *
 *     ...lock-<seq>, ...__lock__<seq>, and the like: Curator and kazoo look at
 *                               the end of a name alone
 *     x-<session>-<seq>         ZooKeeper's own recipe (WriteLock, zoo_lock.c)
 *     <32 hex>                  a lease of kazoo's semaphore
 *     0000000012, -x ...        Curator sorts all children, by the text behind
 *                               its stem, or else by the whole name: it waits
 *                               for those that come before its own sequence.
 *                               (Letters come behind it.)
 */
#ifndef HF_ZK_ENTRY_H
#define HF_ZK_ENTRY_H

#include "backends/common/about.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zk_form {
    ZK_FORM_NONE = 0, /* not an entry: another lock's node, or a stranger's */
    ZK_FORM_LOCK,
    ZK_FORM_READ,
    ZK_FORM_WRITE,
    ZK_FORM_LEASE,
    ZK_FORM_LEADER,
    ZK_FORM_KAZOO_LOCK,
    ZK_FORM_KAZOO_READ,
    ZK_FORM_UNFAIR,
    ZK_FORM_HOLDER,
    ZK_FORM_SEMAPHORE, /* one of the nodes below which a semaphore is kept */
    ZK_FORM_LATCH,
    ZK_FORM_MARK,
    ZK_FORM_KAZOO_LEASE, /* of strangers alone, as the next one */
    ZK_FORM_SORTED,      /* no entry, but before ours to Curator */
};

#define ZK_SEQ_LAST INT32_MAX

struct zk_entry {
    enum zk_form form;
    int64_t seq; /* up to ZK_SEQ_LAST; 0 where the form has none; -1: before
                    all sequences */
    int64_t czxid;
    const char *name; /* all of it, as it was given */
    const char *uuid; /* within name, not terminated; "" if none */
    size_t uuid_len;  /* 36 Curator's and ours, 32 kazoo's, or 0 */
};

#define ZK_CHILD_MAX 64 /* of a child whose form is known */

/* Keeps the pointer. False: of no known form. czxid is 0 then, which stands
 * for not known. */
bool hf__zk_entry_parse(const char *child, struct zk_entry *);

/* Who wants to know. */
enum zk_rule {
    ZK_RULE_MUTEX,
    ZK_RULE_WRITE,
    ZK_RULE_READ,
    ZK_RULE_UNFAIR, /* the holder is before us; others are another kind */
};

/* Of a stranger: it is an entry if it is ephemeral. To somebody of that rule
 * with that sequence; ZK_SEQ_LAST: at the end. False: no known client counts
 * it. Keeps the pointer. */
bool hf__zk_entry_guess(const char *child, enum zk_rule, int64_t seq,
                        struct zk_entry *);

/* By sequence, then by czxid where both are known; 0: cannot tell. */
int hf__zk_entry_order(const struct zk_entry *, const struct zk_entry *);

#define ZK_UUID_MAX (HF__UUID_LEN + 1)
#define ZK_PREFIX_MAX 64

/* What an entry is created with: all but its sequence. The uuid is of
 * hf__uuid(); kazoo's forms leave its hyphens out. */
void hf__zk_entry_prefix(enum zk_form, const char *uuid,
                         char out[ZK_PREFIX_MAX]);

/* Which of the children, or none. */
#define ZK_NOBODY SIZE_MAX

struct zk_place {
    size_t ahead;    /* how many keep us waiting; 0: ours */
    size_t watch;    /* the last of them */
    size_t mismatch; /* one of another kind */
    size_t stranger; /* the first that counts if it is ephemeral, where that is
                        not known: not counted. More may follow */
    size_t tied;     /* the first with our own sequence, where czxid does not
                        tell who was first: counted as ahead of us */
    bool here;       /* our own is among them */
};

/* What is known of a child: its czxid, negative if it is not ephemeral; 0:
 * nothing. */
typedef int64_t zk_czxid_fn(const void *arg, const char *child);

/*
 * The place of `mine` among the children of its node. czxid may be NULL.
 * mine->name is NULL for who wants to know whether it would have to wait at the
 * end.
 */
void hf__zk_place(char *const *child, size_t len, const struct zk_entry *mine,
                  enum zk_rule, zk_czxid_fn *czxid, const void *arg,
                  struct zk_place *);

#endif
