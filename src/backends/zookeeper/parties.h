/*
 * Reads the holders and waiters of a name. Everything below the name's node is
 * read in two round trips: the first lists the children, the second reads each
 * child that can be an entry. After that, the callback then() gets the entries
 * in order, and must end the query. Called by inspect.c.
 */
#ifndef HF_ZK_PARTIES_H
#define HF_ZK_PARTIES_H

#include "entry.h"
#include "node.h"
#include "query.h"

enum zk_where { ZK_AT_NODE, ZK_AT_LOCKS, ZK_AT_LEASES };

/* Room for the data of an entry with ZK_REVOKE at its start. */
#define ZK_DATA_MAX (ZK_ABOUT_MAX + 16)

/* A holder or a waiter. */
struct zk_party {
    struct zk_party *next;
    struct zk_parties *parties;
    struct zk_entry entry; /* parsed from `name` */
    int64_t ctime, mtime, session;
    int32_t version;
    uint8_t where;
    bool stranger; /* the entry counts only if it is ephemeral (entry.h) */
    bool here;     /* the second round trip has found the entry */
    bool holds;    /* this is a holder, not a waiter */
    int data_len;
    char name[ZK_CHILD_MAX];
    char data[ZK_DATA_MAX + 1]; /* terminated by a NUL */
};

struct zk_parties {
    struct zk_query base;
    struct zk_dir {
        struct zk_parties *parties;
        enum zk_where where;
        char path[ZK_WHOLE_MAX];
    } dirs[ZK_AT_LEASES + 1]; /* the nodes whose children are listed */
    void (*then)(struct zk_parties *);
    struct zk_party *first; /* entries in order: those directly below the name's
                               node, then those below `locks`, then those below
                               `leases` */
    size_t len;
    enum hf_kind kind; /* kind of the lock; 0 if the name is not in use */
    bool unfair, is_latch;
    uint32_t permits; /* size of a semaphore; 0 if unknown */
    uint64_t count;   /* count of a latch */
    char round[ZK_UUID_MAX];
    unsigned reached;   /* holders that were deleted or asked */
    bool meant, others; /* some holder is meant by the query; some holder is
                           not */
};

/* Reads everything and calls then(), unless reading fails. Returns an
 * outcome. */
int hf__zk_parties_read(struct zk *, struct hf__query *,
                        void (*then)(struct zk_parties *));
/* Writes the path of the party's entry to `out` and returns `out`. */
const char *hf__zk_party_path(const struct zk_party *, char out[ZK_WHOLE_MAX]);
/* Fills in the hf_party from the entry, its stat and its data. */
void hf__zk_party_fill(const struct zk_party *, hf_party *);
/* Returns whether both entries have the same uuid. */
bool hf__zk_party_same_owner(const struct zk_party *, const struct zk_party *);
/* Returns the entry's data, without the word ZK_REVOKE at its beginning, by
 * which a client asks the holder to release the lock. */
const char *hf__zk_party_words(const struct zk_party *);
/* Returns whether holdfast wrote the entry's data. */
bool hf__zk_party_is_ours(const struct zk_party *);

#endif
