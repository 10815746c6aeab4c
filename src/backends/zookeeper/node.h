/*
 * A node: one entry at the server, and what the client knows of it. A node is
 * in zk.nodes from its creation until its entry is known to be gone or the
 * session has ended; then hf__zk_node_free() frees it. The functions here send
 * nothing: node_create.h creates the entry, cleanup.h deletes it. Called with
 * the client's mutex held.
 *
 * A node belongs to one hold id of one lock, and its name contains that id's
 * uuid, so that the entry can be found again after a lost answer. The uuid is
 * derived from the session (zk.salt), so an entry that is found by it was
 * created in this session.
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
 * CREATING     | nothing, or the entry      | its create; a list after that
 * UNSURE       | nothing, or the entry: an  | exists of it, or a list; none
 *              | answer was lost, or had no | while the connection is down
 *              | czxid                      |
 * THERE        | the entry, by the last     | a list, or a set of its data;
 *              | answer                     | none that deletes it
 * LOWERING     | the entry for writing, or  | the transaction that replaces
 *              | that for reading           | one by the other (renew.c);
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
    ZK_ROLE_PLACE,  /* waiting, or its place is unknown; a lease */
    ZK_ROLE_SECOND, /* mutex: exactly one entry is before it, and watched */
    ZK_ROLE_FIRST,  /* semaphore: first in line, waiting for leases */
    ZK_ROLE_HELD,   /* the hold: the attempt was granted */
};

struct zk_node {
    struct zk_node *next, *prev; /* zk.nodes */
    struct zk *z;
    struct zk_lock *lock;    /* NULL: no longer wanted */
    struct zk_node *sibling; /* next entry of the hold; lock->node is first */
    uint64_t hold_id;
    int64_t czxid; /* THERE: the token; 0: unknown */
    int refusal;   /* GONE: why it was not created; ZOK: it was deleted */
    uint8_t state; /* enum zk_node_state */
    uint8_t role;  /* enum zk_node_role */
    uint8_t form;  /* enum zk_form */

    /* Requests. */
    uint8_t parents; /* how often missing parents were created */
    uint32_t calls;  /* unanswered calls that it owns */
    uint32_t lists;  /* of these, unanswered lists; only the last counts */
    zk_done_fn *listed;

    /* Its place among the children beside it. */
    struct zk_child_stat *child_stats;
    bool strangers_requested; /* once for each place in the queue */
    bool siblings_known;      /* semaphore: no other kind was before it */
    bool swept;               /* mutex: an idle semaphore was swept for it */
    uint32_t made; /* semaphore: leases so far; numbers are not reused */

    /* A hold. */
    struct zk_notify *notify; /* the watch on it; or NULL */
    uint32_t lease_ms;        /* of a fixed lease; 0: none */
    int64_t leased_ms;        /* when the fixed lease began, */
    int64_t granted_ms;       /* and the grant, by the wall clock */
    int32_t version;          /* of the entry's data, as we wrote it */
    bool restated; /* its data has the token and the time of the grant, which
                      the entry does not show */

    /* Its end. */
    struct hf__req *let_go; /* completed when the entry is gone */
    hf__time again_at;      /* when to retry a step that failed; 0: no retry */
    hf__time pause;         /* before a retry after a refusal; 0 */
    bool maybe_deleted;     /* the answer to a delete was lost */
    bool hurried;           /* released again while it is being deleted */

    uint16_t dir_len;  /* length of the lock's path within path */
    uint16_t stem_len; /* length of path without the sequence */
    char path[];       /* without the sequence in CREATING and UNSURE */
};

/* What is known of a child beside a node. child_stats.c fills it in; it is
 * freed with the node. */
struct zk_child_stat {
    struct zk_child_stat *next; /* in zk_node.child_stats */
    struct zk_node *node;
    bool requested; /* unanswered */
    int refusal;    /* the server's error; ZOK: none */
    int64_t czxid;  /* as in zk_czxid_fn */
    char name[];    /* "": requested for an earlier entry */
};

/* A watch on the entry of a hold (notify.c). The node may be freed first. */
struct zk_notify {
    struct zk_notify *next, *prev; /* zk.listening */
    struct zk *z;
    struct zk_node *node; /* NULL: the answer is no longer wanted */
    char path[];
};

/* True for a node that is LOWERING, or was deleted while LOWERING. */
static inline bool hf__zk_node_is_lowered(const struct zk_node *node)
{
    return node->state == ZK_NODE_LOWERING ||
           node->state == ZK_NODE_DELETING_OLD;
}

/* True if the entry exists under one of its names, and is not being deleted. */
static inline bool hf__zk_node_is_there(const struct zk_node *node)
{
    return node->state == ZK_NODE_THERE || node->state == ZK_NODE_LOWERING;
}

/* True if the client, not the server, completes the name: path is complete from
 * the start. */
static inline bool hf__zk_node_is_numbered(const struct zk_node *node)
{
    return node->form == ZK_FORM_HOLDER || node->form == ZK_FORM_LEASE ||
           node->form == ZK_FORM_MARK;
}

static inline bool hf__zk_node_is_gone(const struct zk_node *node)
{
    return node->state == ZK_NODE_GONE || node->state == ZK_NODE_TAKEN;
}

/* A new node of that form for a hold id, below the lock's path or `dir` if not
 * NULL. The caller makes it lock->node or a sibling of it. NULL: out of
 * memory. */
struct zk_node *hf__zk_node_new(struct zk_lock *, const char *dir, uint8_t form,
                                uint64_t hold_id);
/* A new node with that path, in zk.nodes. NULL: out of memory. */
struct zk_node *hf__zk_node_alloc(struct zk *, const char *path, uint8_t form);
/* Adds a number of our own to the path, instead of the server's sequence. */
void hf__zk_node_number(struct zk_node *, uint32_t number);
/* Sets the last part of the path. False: it is longer than a sequence
 * allows. */
bool hf__zk_node_set_name(struct zk_node *, const char *name);

/* The last part of the path. */
const char *hf__zk_node_name(const struct zk_node *);
/* The path of its parent; and of the child there that everyone who wants an
 * unfair mutex tries to create. */
const char *hf__zk_node_dir(const struct zk_node *, char out[ZK_WHOLE_MAX]);
const char *hf__zk_node_unfair(const struct zk_node *, char out[ZK_WHOLE_MAX]);

/* Returns the node of that hold id, or NULL. With a lock, only a node below its
 * path: hold ids are reused after 2^31 locks, and a hold may last that long. */
struct zk_node *hf__zk_node_of(const struct zk *, const struct zk_lock *,
                               uint64_t hold_id);
/* Sets THERE or GONE by a list of the siblings. For cleanup.c. */
void hf__zk_node_match(struct zk_node *, const struct String_vector *children);

/* Renames the node and its form from write to read: LOWERING. */
void hf__zk_node_lower(struct zk_node *);
/* The path for writing of a node that is LOWERING. */
void hf__zk_node_unlowered(const struct zk_node *, char out[ZK_WHOLE_MAX]);

/* Forgets the stats of the children, which belong to an earlier entry. A stat
 * that is still requested keeps its memory until the answer, but is not
 * found. */
void hf__zk_node_forget_child_stats(struct zk_node *);
void hf__zk_node_stop_notify(struct zk_node *);
/* Removes the node from memory; sends nothing. */
void hf__zk_node_free(struct zk_node *);

/* Sets zk.nowhere for this session. */
void hf__zk_nowhere(struct zk *);

/* ---- the data of nodes ----------------------------------------------------
 * An entry describes its owner, `leases` and `latch` describe their lock, and a
 * word asks a holder to hand over. */

#define ZK_ABOUT_MAX 512 /* bytes of the description of an owner */

#define ZK_REVOKE "__REVOKE__"
#define ZK_PERMITS "holdfast permits " /* data of leases: a prefix */
#define ZK_COUNT_MAX 96                /* bytes of the data of latch */
#define ZK_COUNT "holdfast latch "     /* data of latch: a prefix */

/* Writes the description of the node's owner, for inspections; returns the
 * length. */
int hf__zk_node_describe(const struct zk_node *, char data[ZK_ABOUT_MAX]);

/* True if the data begins with the word that asks the holder to hand over. */
bool hf__zk_is_revoke(const char *data, int len);

/* The size of a semaphore; 0: the data has none. */
uint32_t hf__zk_permits_parse(const char *data, int len);
/* Reads the count and the round; false: not written by holdfast. */
bool hf__zk_count_parse(const char *data, int len, uint64_t *count,
                        char round[ZK_UUID_MAX]);

#endif
