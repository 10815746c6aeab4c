/*
 * A node: one entry at the server, and what is known of it here. It is in
 * zk.nodes from its making until it is known to be gone, or the session is
 * over; then hf__zk_node_free() frees it. These functions send nothing.
 * node_create.h sends what makes one, cleanup.h what ends it. With the client's
 * mutex held.
 */
#ifndef HF_ZK_NODE_H
#define HF_ZK_NODE_H

#include "call.h"
#include "entry.h"
#include "path.h"

/*
 * What is known of the entry.
 *
 * state        | what exists at the server  | which request may be under way
 * -------------+----------------------------+------------------------------
 * CREATING     | nothing, or the entry      | its create; a list after that
 * UNSURE       | nothing, or the entry: an  | exists of it, or a list; none
 *              | answer was lost, or has    | while the connection is down
 *              | brought no czxid           |
 * THERE        | the entry, by the last     | a list, or a set of its data;
 *              | answer                     | none that deletes it
 * LOWERING     | the entry for writing, or  | the transaction that replaces
 *              | that for reading           | one by the other (renew.c);
 *              |                            | none if its answer was lost
 * DELETING     | the entry, or nothing      | its delete
 * DELETING_OLD | as LOWERING, or nothing    | the delete of the one for
 *              |                            | writing; the other follows
 * GONE         | nothing: it was not sent,  | none about the entry, or one
 *              | not created (refusal), or  | whose answer does not matter
 *              | deleted                    | any more (calls)
 * TAKEN        | nothing: somebody else has | as GONE
 *              | deleted it                 |
 *
 * Legal with a lock (somebody wants it): CREATING, UNSURE, THERE, LOWERING,
 * GONE; without: all of them. A hold (ZK_ROLE_HELD) that has its lock is THERE
 * or LOWERING. Beside the state, `maybe_deleted` becomes true with the answer
 * to a delete and stays so, and `hurried` is set in DELETING and DELETING_OLD
 * alone, for the answer that comes next.
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

/* What it is to its lock, if it has one. */
enum zk_node_role {
    ZK_ROLE_PLACE,  /* it waits, or its place is not known yet; a lease */
    ZK_ROLE_SECOND, /* of a mutex: just one is before it, which it watches */
    ZK_ROLE_FIRST,  /* a semaphore's turn, of all: leases are waited for */
    ZK_ROLE_HELD,   /* the lock's attempt was granted by it */
};

struct zk_node {
    struct zk_node *next, *prev; /* zk.nodes */
    struct zk *z;
    struct zk_lock *lock;     /* NULL: nobody wants it any more */
    struct hf__req *let_go;   /* to be reported when it is gone */
    struct zk_node *sibling;  /* the next of the same hold; lock->node is the
                                 first */
    struct zk_notify *notify; /* listens to it; or NULL */
    struct zk_child_stat *child_stats; /* of the children beside it */
    uint64_t hold_id;
    int64_t czxid;  /* THERE: the token; 0: not known yet */
    uint32_t calls; /* under way, with this owner */
    uint32_t lists; /* of these: only the last one counts */
    zk_done_fn *listed;
    hf__time again_at;  /* its next step could not be made: tried again; 0 */
    hf__time pause;     /* before that, if it was refused; 0 */
    uint32_t lease_ms;  /* a fixed one; 0: none */
    int64_t granted_ms; /* by the wall clock; */
    int64_t leased_ms;  /* and when its fixed lease began */
    int32_t version;    /* of what it says, if nobody else has changed it */
    int refusal;   /* GONE: why it was not created; ZOK: it was taken away */
    uint8_t state; /* enum zk_node_state */
    uint8_t role;  /* enum zk_node_role */
    uint8_t form;  /* enum zk_form */
    bool maybe_deleted; /* an answer to its deletion was lost */
    bool hurried;       /* let go once more while it is being deleted */
    bool swept;         /* its siblings were, of what a semaphore has left */
    uint8_t parents;    /* how often they were missing, and were made */
    bool restated; /* it says what its entry does not show any more: its token,
                      and when it was granted */
    bool strangers_requested; /* those beside it were, once for a place */
    bool siblings_known; /* of a semaphore: no other kind was there before it */
    uint32_t made;       /* leases of its hold, so far: no name is used again */
    uint16_t dir_len;    /* of the path: the lock's node */
    uint16_t stem_len;   /* of the path, without the sequence */
    char path[];         /* CREATING, UNSURE: without the sequence */
};

/* What is known of a child beside it. child_stats.c fills it in, and it goes
 * with the node. */
struct zk_child_stat {
    struct zk_child_stat *next; /* of the node */
    struct zk_node *node;
    bool requested; /* and not answered yet */
    int refusal;    /* the server does not tell; ZOK: it does */
    int64_t czxid;  /* as for hf__zk_place() */
    char name[];    /* "": the answer is about the time before a new entry */
};

/* A watch on the entry of a hold (notify.c), of which the node knows so that it
 * can be gone before. */
struct zk_notify {
    struct zk_notify *next, *prev; /* zk.listening */
    struct zk *z;
    struct zk_node *node; /* NULL: nobody listens any more */
    char path[];
};

/* LOWERING, or being deleted from there. */
static inline bool hf__zk_node_is_lowered(const struct zk_node *node)
{
    return node->state == ZK_NODE_LOWERING ||
           node->state == ZK_NODE_DELETING_OLD;
}

/* Under one name or the other; and nobody deletes it. */
static inline bool hf__zk_node_is_there(const struct zk_node *node)
{
    return node->state == ZK_NODE_THERE || node->state == ZK_NODE_LOWERING;
}

/* By us, not by the server: its path is whole from the beginning. */
static inline bool hf__zk_node_is_numbered(const struct zk_node *node)
{
    return node->form == ZK_FORM_HOLDER || node->form == ZK_FORM_LEASE ||
           node->form == ZK_FORM_MARK;
}

static inline bool hf__zk_node_is_gone(const struct zk_node *node)
{
    return node->state == ZK_NODE_GONE || node->state == ZK_NODE_TAKEN;
}

/* An entry of the form below the lock's node (or `dir`, if not NULL), for the
 * hold id. It is to become lock->node, or a sibling of that; nothing is sent
 * yet. NULL: out of memory. */
struct zk_node *hf__zk_node_new(struct zk_lock *, const char *dir, uint8_t form,
                                uint64_t hold_id);
/* One with that path, in zk.nodes; NULL: out of memory. */
struct zk_node *hf__zk_node_alloc(struct zk *, const char *path, uint8_t form);
/* Numbers it among those of its hold, instead of the server. */
void hf__zk_node_number(struct zk_node *, uint32_t number);
/* Gives it that name; false: longer than the server's sequences are. */
bool hf__zk_node_set_name(struct zk_node *, const char *name);

/* Its name below the lock's node. */
const char *hf__zk_node_name(const struct zk_node *);
/* Its lock's node; and the node there that all who want an unfair mutex try to
 * create. */
const char *hf__zk_node_dir(const struct zk_node *, char out[ZK_WHOLE_MAX]);
const char *hf__zk_node_unfair(const struct zk_node *, char out[ZK_WHOLE_MAX]);

/* The one of that hold id; NULL: it is gone. With a lock, only below its node:
 * after 2^31 locks their ids are used again, and a hold may last. */
struct zk_node *hf__zk_node_of(const struct zk *, const struct zk_lock *,
                               uint64_t hold_id);
/* For cleanup.c: whether it is in the list, THERE or GONE. */
void hf__zk_node_match(struct zk_node *, const struct String_vector *children);

/* Renames it and its form from write to read: LOWERING. */
void hf__zk_node_lower(struct zk_node *);
/* The name for writing of a node that is lowered. */
void hf__zk_node_unlowered(const struct zk_node *, char out[ZK_WHOLE_MAX]);

/* What was learned is about the time before a new entry; what is under way
 * keeps its memory until it is answered, but nothing finds it any more. */
void hf__zk_node_forget_child_stats(struct zk_node *);
void hf__zk_node_stop_notify(struct zk_node *);
/* Forgets it; nothing is said to the server. */
void hf__zk_node_free(struct zk_node *);

/* Makes zk.nowhere, of this session. */
void hf__zk_nowhere(struct zk *);

#endif
