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
    struct zk_line *line; /* whose question it is; NULL: it is gone */
    void (*step)(struct zk_query *); /* what follows */
    void (*fini)(struct zk_query *); /* frees what it has; may be NULL */
    unsigned calls;                  /* of this step, under way */
    int rc;
    char path[ZK_WHOLE_MAX]; /* of the name's node */
};

/* Of that size, zeroed, with its path; NULL and *rc: EINVAL or ENOMEM. */
void *hf__zk_query_new(struct zk *, struct hf__query *, size_t size, int *rc);
/* For what a line asks: no query, its path is the line's. NULL: ENOMEM. */
void *hf__zk_query_of(struct zk_line *, size_t size);
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
struct zk_seen {
    struct zk_seen *next;
    struct zk_look *look;
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

struct zk_look {
    struct zk_query base;
    struct zk_dir {
        struct zk_look *look;
        enum zk_where where;
        char path[ZK_WHOLE_MAX];
    } dirs[ZK_AT_LEASES + 1]; /* that are listed */
    void (*then)(struct zk_look *);
    struct zk_seen *first; /* in their order: node, locks, leases */
    enum hf_kind kind;     /* 0: nobody */
    bool unfair, is_latch;
    uint32_t permits; /* 0: not known */
    uint64_t count;   /* of a latch */
    char round[ZK_UUID_MAX];
    unsigned reached;   /* holders that something was done to */
    bool meant, others; /* there were holders that were meant; and others */
};

/* Looks, and calls then() with everything. An outcome. */
int hf__zk_look(struct zk *, struct hf__query *,
                void (*then)(struct zk_look *));
/* The whole path of one. */
const char *hf__zk_seen_path(const struct zk_seen *, char out[ZK_WHOLE_MAX]);
void hf__zk_seen_party(const struct zk_seen *, hf_party *);
/* Its data, without the word that asks for it; and it is an entry of ours that
 * says this of itself, and not a foreign one. */
bool hf__zk_seen_same_owner(const struct zk_seen *, const struct zk_seen *);
const char *hf__zk_seen_words(const struct zk_seen *);
bool hf__zk_seen_is_ours(const struct zk_seen *);

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
void hf__zk_sweep(struct zk *, const char *path);

int hf__zk_inspect(struct zk *, struct hf__query *);
int hf__zk_break(struct zk *, struct hf__query *);
int hf__zk_ask(struct zk *, struct hf__query *);
int hf__zk_list_names(struct zk *, struct hf__query *);
int hf__zk_latch(struct zk *, struct hf__query *);
int hf__zk_put(struct zk *, struct hf__query *);
int hf__zk_diagnose(struct zk *, struct hf__query *);

#endif
