/*
 * A node: one entry at the server, and what the client knows of it. A node is
 * in zk.nodes from its creation until its entry is known to be gone or the
 * session has ended; then hf__zk_node_free() frees it. The functions here send
 * nothing: node_create.h creates the entry, cleanup.h deletes it. Called with
 * the client's mutex held.
 *
 * A node belongs to one hold id of one lock. The name of its entry contains a
 * uuid, so that the entry can be found again after a lost answer. The uuid is
 * derived from the session (zk.salt) and from the hold id; in an unfair mutex,
 * from zk.holders instead of the hold id. So an entry that is found by its uuid
 * was created in this session.
 */
#ifndef HF_ZK_NODE_H
#define HF_ZK_NODE_H

#include "call.h"
#include "entry.h"
#include "path.h"

/*
 * What is known of the entry.
 *
 * state        | what exists at the server  | which request may be unanswered
 * -------------+----------------------------+------------------------------
 * CREATING     | nothing, or the entry      | its create, and a later list
 * UNSURE       | nothing, or the entry: an  | exists of it, or a list; none
 *              | answer was lost, or had no | while the connection is down
 *              | czxid                      |
 * THERE        | the entry, by the last     | a list, or a set of its data;
 *              | answer                     | none that deletes it
 * LOWERING     | the entry for writing, or  | the transaction that replaces
 *              | that for reading           | one with the other (renew.c);
 *              |                            | none if its answer was lost
 * DELETING     | the entry, or nothing      | its delete
 * DELETING_OLD | as LOWERING, or nothing    | the delete of the one for
 *              |                            | writing; the other follows
 * GONE         | nothing: not sent, not     | none about the entry, or one
 *              | created (refusal), or      | whose answer no longer
 *              | deleted                    | matters (calls)
 * TAKEN        | nothing: another client    | as GONE
 *              | has deleted it             |
 *
 * A node with a lock is CREATING, UNSURE, THERE, LOWERING or GONE; without a
 * lock, in any state. A hold (ZK_ROLE_HELD) with its lock is THERE or LOWERING.
 * `maybe_deleted` becomes true when the answer to a delete is lost, and stays
 * true. `hurried` is set only in DELETING and DELETING_OLD, until the next
 * answer.
 */
enum zk_node_state {
    ZK_NODE_CREATING,
    ZK_NODE_UNSURE,
    ZK_NODE_THERE,
    ZK_NODE_LOWERING,
    ZK_NODE_DELETING,
    ZK_NODE_DELETING_OLD,
    ZK_NODE_GONE,
    ZK_NODE_TAKEN,
};

/* The role of a node for its lock, if it has one. */
enum zk_node_role {
    ZK_ROLE_PLACE,  /* waits, or its place is unknown; or a lease node of a
                       semaphore other than the hold's first one */
    ZK_ROLE_SECOND, /* mutex: only one entry is before it, which is watched */
    ZK_ROLE_FIRST,  /* semaphore: first in the queue, waiting for leases */
    ZK_ROLE_HELD,   /* the hold: the attempt was granted */
};

struct zk_node {
    struct zk_node *next, *prev; /* zk.nodes */
    struct zk *z;
    struct zk_lock *lock;    /* NULL if the node is no longer wanted */
    struct zk_node *sibling; /* next entry of the hold; lock->node is first */
    uint64_t hold_id;
    int64_t czxid; /* the entry's czxid, which is the token; 0 if unknown */
    int refusal;   /* of a GONE node: why the create was refused, or ZOK */
    uint8_t state; /* enum zk_node_state */
    uint8_t role;  /* enum zk_node_role */
    uint8_t form;  /* enum zk_form */

    /* For the node's requests: */
    uint8_t parents; /* times that creates of missing parents were sent */
    uint32_t calls;  /* unanswered calls that it owns */
    uint32_t lists;  /* unanswered lists; only the last one counts */
    zk_done_fn *listed;

    /* For the entry's place among the children of its parent: */
    struct zk_child_stat *child_stats;
    bool strangers_requested; /* strangers were requested for this place in the
                                 queue */
    bool siblings_known; /* semaphore: no entry of another kind was found */
    bool swept;    /* nodes of an idle semaphore were deleted for the entry */
    uint32_t made; /* semaphore: the number of the next lease */

    /* Only for a hold: */
    struct zk_notify *notify; /* the watch on its entry; or NULL */
    uint32_t lease_ms;        /* length of the fixed lease, or 0 */
    int64_t leased_ms;        /* start of the fixed lease, by the wall clock */
    int64_t granted_ms;       /* time of the grant, by the wall clock */
    int32_t version;          /* version of the entry's data after our last
                                 write */
    bool restated; /* the data contains the token and the time of the grant,
                      because the entry's czxid and mtime no longer show them */

    /* For the deletion of the entry: */
    struct hf__req *let_go; /* release or abandon to complete when the entry is
                               gone; or NULL */
    hf__time again_at;      /* when to retry a step that failed, or 0 */
    hf__time pause;         /* pause before that retry; 0 if no delete was
                               refused */
    bool maybe_deleted;     /* the answer to a delete was lost */
    bool hurried; /* a new let_go came while the delete was unanswered */

    uint16_t dir_len;  /* length of the lock's path within path */
    uint16_t stem_len; /* length of path without the sequence */
    char path[];       /* without the sequence in CREATING and UNSURE */
};

/* What is known of another child of the entry's parent. child_stats.c fills it
 * in; it is freed with the node. */
struct zk_child_stat {
    struct zk_child_stat *next; /* in zk_node.child_stats */
    struct zk_node *node;
    bool requested; /* the request is unanswered */
    int refusal;    /* the server's error, or ZOK */
    int64_t czxid;  /* 0 if unknown; negative if persistent (entry.h) */
    char name[];    /* "" if the stat was requested for an earlier entry */
};

/* A watch on the entry of a hold (notify.c), which may outlive the node. */
struct zk_notify {
    struct zk_notify *next, *prev; /* zk.listening */
    struct zk *z;
    struct zk_node *node; /* NULL if the watch is no longer wanted */
    char path[];
};

/* Returns true for a node that is LOWERING, or whose deletion began while it
 * was LOWERING. */
static inline bool hf__zk_node_is_lowered(const struct zk_node *node)
{
    return node->state == ZK_NODE_LOWERING ||
           node->state == ZK_NODE_DELETING_OLD;
}

/* Returns true if the entry exists under one of its names and is not being
 * deleted. */
static inline bool hf__zk_node_is_there(const struct zk_node *node)
{
    return node->state == ZK_NODE_THERE || node->state == ZK_NODE_LOWERING;
}

/* Returns true if the client, and not the server, completes the name. Then
 * `path` is complete from the start. */
static inline bool hf__zk_node_is_numbered(const struct zk_node *node)
{
    return node->form == ZK_FORM_HOLDER || node->form == ZK_FORM_LEASE ||
           node->form == ZK_FORM_MARK;
}

static inline bool hf__zk_node_is_gone(const struct zk_node *node)
{
    return node->state == ZK_NODE_GONE || node->state == ZK_NODE_TAKEN;
}

/* Returns a new node of that form for a hold id, below the lock's path, or
 * below `dir` if that is not NULL. The caller makes it lock->node or a sibling
 * of it. Returns NULL if memory is short. */
struct zk_node *hf__zk_node_new(struct zk_lock *, const char *dir, uint8_t form,
                                uint64_t hold_id);
/* Returns a new node with that path, in zk.nodes, or NULL if memory is
 * short. */
struct zk_node *hf__zk_node_alloc(struct zk *, const char *path, uint8_t form);
/* Completes the path with a number that the client chooses. (In other entries,
 * that place holds the server's sequence.) */
void hf__zk_node_number(struct zk_node *, uint32_t number);
/* Sets the last part of the path. Returns false if the name is longer than a
 * sequence allows. */
bool hf__zk_node_set_name(struct zk_node *, const char *name);

/* Returns the last part of the path. */
const char *hf__zk_node_name(const struct zk_node *);
/* Writes the path of the entry's parent and returns `out`. */
const char *hf__zk_node_dir(const struct zk_node *, char out[ZK_WHOLE_MAX]);
/* Writes the path of the node `lock` below the parent and returns `out`. Each
 * client that wants the unfair mutex tries to create that node. */
const char *hf__zk_node_unfair(const struct zk_node *, char out[ZK_WHOLE_MAX]);

/* Returns the node of that hold id, or NULL. If a lock is given, only a node
 * below the lock's path counts: hold ids repeat after 2^31 lines, and a hold
 * may last that long. */
struct zk_node *hf__zk_node_of(const struct zk *, const struct zk_lock *,
                               uint64_t hold_id);
/* Makes the node THERE or GONE, depending on whether a list of the children of
 * the entry's parent contains the entry. Called by cleanup.c and
 * node_create.c. */
void hf__zk_node_match(struct zk_node *, const struct String_vector *children);

/* Changes the name and form of the node from write to read. The node becomes
 * LOWERING. */
void hf__zk_node_lower(struct zk_node *);
/* Writes the path that the entry of a LOWERING node had for writing. */
void hf__zk_node_unlowered(const struct zk_node *, char out[ZK_WHOLE_MAX]);

/* Forgets the child stats, which were requested for an earlier entry. If a
 * request for a stat is unanswered, the memory of that stat is kept until the
 * answer, but lookups no longer find it. */
void hf__zk_node_forget_child_stats(struct zk_node *);
void hf__zk_node_stop_notify(struct zk_node *);
/* Removes the node from memory; sends nothing. */
void hf__zk_node_free(struct zk_node *);

/* Sets zk.nowhere for this session. */
void hf__zk_nowhere(struct zk *);

/* ---- the data of nodes ----------------------------------------------------
 * The data of an entry describes its owner; that of `leases` and of `latch`
 * describes the lock. A word at the start of an entry's data asks the holder to
 * release the lock. */

#define ZK_ABOUT_MAX 512 /* longest description of an owner, in bytes */

#define ZK_REVOKE "__REVOKE__"
#define ZK_PERMITS "holdfast permits " /* prefix of the data of `leases` */
#define ZK_COUNT_MAX 96                /* longest data of `latch`, in bytes */
#define ZK_COUNT "holdfast latch "     /* prefix of the data of `latch` */

/* Writes the description of the node's owner, for inspections, and returns its
 * length. */
int hf__zk_node_describe(const struct zk_node *, char data[ZK_ABOUT_MAX]);

/* Returns true if the data begins with the word that asks the holder to release
 * the lock. */
bool hf__zk_is_revoke(const char *data, int len);

/* Returns the size of a semaphore, or 0 if the data contains none. */
uint32_t hf__zk_permits_parse(const char *data, int len);
/* Reads the count and the round of a latch. Returns false if holdfast did not
 * write the data. */
bool hf__zk_count_parse(const char *data, int len, uint64_t *count,
                        char round[ZK_UUID_MAX]);

#endif
