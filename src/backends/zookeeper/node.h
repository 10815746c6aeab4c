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

enum zk_node_state {
    ZK_NODE_CREATING, /* sent, not answered */
    ZK_NODE_UNSURE,   /* the answer was lost: look for it */
    ZK_NODE_THERE,
    ZK_NODE_DELETING,
    ZK_NODE_GONE,
};

struct zk_node {
    struct zk_node *next, *prev; /* zk.nodes */
    struct zk *z;
    struct zk_lock *lock;     /* NULL: nobody wants it any more */
    struct hf__req *let_go;   /* to be reported when it is gone */
    struct zk_node *sibling;  /* the next of the same hold; lock->node is the
                                 first */
    struct zk_notify *notify; /* listens to it; or NULL */
    struct zk_child_stat
        *child_stats; /* what is known of the children beside it */
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
    int refusal;     /* GONE: why it was not created; ZOK: it was taken away */
    uint8_t state;   /* enum zk_node_state */
    uint8_t form;    /* enum zk_form */
    bool numbered;   /* by us: its name is whole, not a sequence's */
    bool taken;      /* by somebody else: it was not there to be deleted */
    bool unsure;     /* an answer to its deletion was lost */
    bool hurried;    /* let go once more while it is being deleted */
    bool swept;      /* its siblings were, of what a semaphore has left */
    bool held;       /* its lock's attempt was granted by it */
    uint8_t parents; /* how often they were missing, and were made */
    bool lowered;    /* sent from write to read, and not answered yet: it may be
                        under either name */
    bool restated; /* it says what its entry does not show any more: its token,
                      and when it was granted */
    bool second;   /* of a mutex: just one was before it, and it watches that */
    bool strangers_requested; /* the strangers beside it were */
    bool first;        /* a semaphore's turn: of all; leases are waited for */
    uint32_t made;     /* leases of its hold, so far: no name is used again */
    uint16_t dir_len;  /* of the path: the lock's node */
    uint16_t stem_len; /* of the path, without the sequence */
    char path[];       /* CREATING, UNSURE: without the sequence */
};

struct zk_child_stat {
    struct zk_child_stat *next; /* of the node */
    struct zk_node *node;
    bool requested; /* and not answered yet */
    int refusal;    /* the server does not tell; ZOK: it does */
    int64_t czxid;  /* as for hf__zk_place() */
    char name[];    /* "": the answer is about the time before a new entry */
};

struct zk_notify {
    struct zk_notify *next, *prev; /* zk.listening */
    struct zk *z;
    struct zk_node *node; /* NULL: nobody listens any more */
    char path[];
};

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

/* The one of that hold id, if it is not gone yet; and if it is below the lock's
 * node: after 2^31 locks their ids are used again, and a hold may last. */
struct zk_node *hf__zk_node_of(struct zk *, uint64_t hold_id);
struct zk_node *hf__zk_node_below(const struct zk_lock *, uint64_t hold_id);
/* For cleanup.c: whether it is in the list, THERE or GONE. */
void hf__zk_node_match(struct zk_node *, const struct String_vector *children);

/* Renames it and its form from write to read. */
void hf__zk_node_lower(struct zk_node *);
/* The other name of a node that is `lowered`. */
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
