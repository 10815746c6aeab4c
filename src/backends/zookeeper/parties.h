/*
 * Who holds a name and who waits for it: everything below its node is read in
 * two trips and put in order, and then the caller's function gets it. Called by
 * inspect.c. It is a query: who is called ends it.
 */
#ifndef HF_ZK_PARTIES_H
#define HF_ZK_PARTIES_H

#include "entry.h"
#include "node_data.h"
#include "query.h"

enum zk_where { ZK_AT_NODE, ZK_AT_LOCKS, ZK_AT_LEASES };

#define ZK_DATA_MAX (ZK_ABOUT_MAX + 16) /* and a word that asks for it */

/* A holder, or somebody who waits. */
struct zk_party {
    struct zk_party *next;
    struct zk_parties *parties;
    struct zk_entry entry; /* of name */
    int64_t ctime, mtime, session;
    int32_t version;
    uint8_t where;
    bool stranger; /* counts if it is ephemeral (entry.h) */
    bool here;     /* it was there when we looked for it */
    bool holds;    /* else it waits */
    int data_len;
    char name[ZK_CHILD_MAX];
    char data[ZK_DATA_MAX + 1]; /* terminated */
};

struct zk_parties {
    struct zk_query base;
    struct zk_dir {
        struct zk_parties *parties;
        enum zk_where where;
        char path[ZK_WHOLE_MAX];
    } dirs[ZK_AT_LEASES + 1]; /* that are listed */
    void (*then)(struct zk_parties *);
    struct zk_party *first; /* in their order: node, locks, leases */
    size_t len;
    enum hf_kind kind; /* 0: nobody */
    bool unfair, is_latch;
    uint32_t permits; /* 0: not known */
    uint64_t count;   /* of a latch */
    char round[ZK_UUID_MAX];
    unsigned reached;   /* holders that something was done to */
    bool meant, others; /* there were holders that were meant; and others */
};

/* Looks, and calls then() with everything. An outcome. */
int hf__zk_parties_read(struct zk *, struct hf__query *,
                        void (*then)(struct zk_parties *));
/* The whole path of one. */
const char *hf__zk_party_path(const struct zk_party *, char out[ZK_WHOLE_MAX]);
void hf__zk_party_fill(const struct zk_party *, hf_party *);
/* Its data, without the word that asks for it; and it is an entry of ours that
 * says this of itself, and not a foreign one. */
bool hf__zk_party_same_owner(const struct zk_party *, const struct zk_party *);
const char *hf__zk_party_words(const struct zk_party *);
bool hf__zk_party_is_ours(const struct zk_party *);

#endif
