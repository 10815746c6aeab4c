/*
 * Questions about a name, which take several calls: all of a step are sent
 * together, the next one follows when all are answered. The first failure
 * counts, and ends the question after its step.
 */
#ifndef HF_ZK_QUERY_H
#define HF_ZK_QUERY_H

#include "entry.h"
#include "path.h"
#include "zookeeper.h"

struct zk_query {
    struct zk_query *next, *prev; /* zk.queries */
    struct zk *z;
    struct hf__query *q;  /* that it answers; or */
    struct zk_lock *lock; /* whose question it is; NULL: it is gone */
    void (*step)(struct zk_query *); /* what follows */
    void (*fini)(struct zk_query *); /* frees what it has; may be NULL */
    unsigned calls;                  /* of this step, under way */
    int rc;
    char path[ZK_WHOLE_MAX]; /* of the name's node */
};

/* Of that size, zeroed, with its path; NULL and *rc: EINVAL or ENOMEM. */
void *hf__zk_query_new(struct zk *, struct hf__query *, size_t size, int *rc);
/* For what a lock asks: no query, its path is the lock's. NULL: ENOMEM. */
void *hf__zk_query_of(struct zk_lock *, size_t size);
/* A call was sent, or not: the code of sending it. */
void hf__zk_query_sent(struct zk_query *, int rc);
/* One of its calls is answered: rc, a code of holdfast's, counts if it is the
 * first failure. The last thing that a completion does. */
void hf__zk_query_back(struct zk_query *, int rc);
/* All of a step are sent. PENDING, or it is over and this is its result. */
int hf__zk_query_wait(struct zk_query *, void (*step)(struct zk_query *));
/* Its caller has left: nothing more is to be written for it. */
bool hf__zk_query_is_over(const struct zk_query *);
/* Reports it and frees it. */
void hf__zk_query_end(struct zk_query *, int result);
void hf__zk_query_free(struct zk_query *);
/* 0, EUNKNOWN, or what the refusal means; that there is no such node is none.
 * Of a question, or of a call that needs that right (hf__zk_denied). */
int hf__zk_query_code(struct zk_query *, int rc);
int hf__zk_query_refusal(struct zk_query *, int rc, const char *right);

/* ---- inspect.c: who is there ------------------------------------------------
 */

enum zk_where { ZK_AT_NODE, ZK_AT_LOCKS, ZK_AT_LEASES };

#define ZK_DATA_MAX (ZK_ABOUT_MAX + 16) /* and a word that asks for it */
#define ZK_CHILD_MAX 64

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
    enum hf_kind kind;      /* 0: nobody */
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

/* ---- the rest ----------------------------------------------------------- */

#define ZK_REVOKE "__REVOKE__"
#define ZK_PERMITS "holdfast permits " /* data of leases: and how many */
#define ZK_COUNT_MAX 96                /* of the data of latch */
#define ZK_COUNT "holdfast latch "     /* of latch: the count, the round */

/* 0: it does not say. */
uint32_t hf__zk_permits_parse(const char *data, int len);
/* What is left and which round it is; false: not one of ours. */
bool hf__zk_count_parse(const char *data, int len, uint64_t *count,
                        char round[ZK_UUID_MAX]);

/* Deletes what an idle semaphore has left below the node, if it is idle. */
void hf__zk_sweep_semaphore(struct zk *, const char *path);

int hf__zk_inspect_query(struct zk *, struct hf__query *);
int hf__zk_break_query(struct zk *, struct hf__query *);
int hf__zk_ask_query(struct zk *, struct hf__query *);
int hf__zk_list_query(struct zk *, struct hf__query *);
int hf__zk_latch_query(struct zk *, struct hf__query *);
int hf__zk_put_query(struct zk *, struct hf__query *);
int hf__zk_diagnose_query(struct zk *, struct hf__query *);

#endif
