/*
 * The ZooKeeper backend, inside. One session per client, through the library's
 * single-threaded form: it has no thread, we drive it.
 *
 * Everything here runs with the client's mutex held, except open() and close(),
 * which run on the helper thread before and after that. The library's callbacks
 * run inside its own functions, so under the mutex too; in close() they only
 * free what is theirs (zk.closing).
 *
 * The words: a *lock* is the core's (hf__remote). A *node* is one entry of it
 * at the server, made for one hold id: it outlives the lock's interest in it
 * until it is known to be gone, so that whatever was created or may have been
 * is removed. A *call* is one request to the server; it is answered exactly
 * once, and belongs to a node, or a query, never to a lock: so what comes late
 * finds the node of its time, and no newer one. A *watch* is on one path, for
 * all locks that wait for it.
 *
 * Files: zookeeper.c the table, the URL; session.c the handle, from its making
 * to expiry; connect.c, session_proof.c how it begins and how long it lasts;
 * addr.c addresses; words.c what the library says; call.c requests and
 * completions; node.c entries, cleanup.c their end; watch.c watches; lock.c
 * what the core asks; queue.c mutex and read-write lock; rwlock.c downgrade;
 * foreign_entries.c children of no known form; child_stats.c what is asked
 * about children; renew.c renewals; semaphore.c, latch.c; query.c, inspect.c,
 * list.c, put.c what is asked about names; changes.c changes of them; notify.c
 * holders that listen; path.c names, entry.c children: both pure.
 */
#ifndef HF_ZOOKEEPER_H
#define HF_ZOOKEEPER_H

#include "backends/common/table.h"
#include "base/list.h"
#include "entry.h"
#include "path.h"

#include <zookeeper/zookeeper.h>

#define ZK_ABOUT_MAX 512 /* bytes of what an entry says of its owner */

struct zk;
struct zk_call;
struct zk_chunk;
struct zk_notify;
struct zk_lock;
struct zk_node;
struct zk_query;
struct zk_round;
struct zk_child_stat;
struct zk_watch;

/* ---- call.c ----------------------------------------------------------- */

/* What came with a ZOK (z with any code); of the library, gone when the
 * completion returns. */
struct zk_reply {
    struct zk *z;
    const char *text;                     /* create: the path; get: the data */
    int len;                              /* get; -1: no data */
    const struct Stat *stat;              /* create, get, exists, set */
    const struct String_vector *children; /* list */
    const zoo_op_result_t *results;       /* multi, and if it was refused too:
                                             .err of each */
};

/* Called once for a call that was sent, with the library's code; never in
 * close(). Whatever was not answered has a code for which hf__zk_lost() is
 * true. It may send further calls. */
typedef void zk_done_fn(void *owner, int rc, const struct zk_reply *);

/*
 * Each sends one request; answers come in the order of sending. 0, or a code:
 * then nothing was sent, and done is not called. To be sent only while
 * zk.up. Paths are whole ones. `owner` has to live until done is called (or
 * close()).
 */
int hf__zk_create(struct zk *z, const char *path, const char *data, int len,
                  int mode, zk_done_fn *done, void *owner);
int hf__zk_delete(struct zk *z, const char *path, zk_done_fn *done,
                  void *owner);
int hf__zk_set(struct zk *z, const char *path, const char *data, int len,
               int version, zk_done_fn *done, void *owner);
int hf__zk_list(struct zk *z, const char *path, zk_done_fn *done, void *owner);
int hf__zk_get(struct zk *z, const char *path, zk_done_fn *done, void *owner);
int hf__zk_exists(struct zk *z, const char *path, zk_done_fn *done,
                  void *owner);
int hf__zk_sync(struct zk *z, zk_done_fn *done, void *owner);
/* All or none. (What the operations themselves point to for their results has
 * to live as long as the owner.) */
int hf__zk_multi(struct zk *z, size_t len, const zoo_op_t *op, zk_done_fn *done,
                 void *owner);
/* Every missing node of the path, as containers; those of the root stay, and in
 * kazoo's dialect all of them. Sent before what follows. If one is refused,
 * what follows will say NONODE. */
int hf__zk_make_parents(struct zk *z, const char *path);
/* Why one of them was refused, the last time; ZOK: none was. */
int hf__zk_parents_refused(const struct zk *z, const char *path);

/* Not answered: it may have been done, or not. */
bool hf__zk_lost(int rc);

/* With a watch. */
int hf__zk_exists_watched(struct zk *z, const char *path, watcher_fn watcher,
                          void *arg, zk_done_fn *done, void *owner);
int hf__zk_get_watched(struct zk *z, const char *path, watcher_fn watcher,
                       void *arg, zk_done_fn *done, void *owner);
int hf__zk_list_watched(struct zk *z, const char *path, watcher_fn watcher,
                        void *arg, zk_done_fn *done, void *owner);
/* Since when an answer has not come; HF__NEVER: nothing was asked. */
hf__time hf__zk_calls_since(const struct zk *);
void hf__zk_calls_fini(struct zk *);

/* ---- watch.c ---------------------------------------------------------- */

enum zk_watch_kind { ZK_WATCH_NODE, ZK_WATCH_CHILDREN };

/*
 * The lock's bell rings once when the node changes or goes, or its list of
 * children does; at once if it is not there. A lock has one watch at a time,
 * and a path one of each kind, however many locks wait for it. When the session
 * is lost all are forgotten.
 */
int hf__zk_watch(struct zk *, struct zk_lock *, enum zk_watch_kind,
                 const char *path);
void hf__zk_unwatch(struct zk_lock *);
/* The connection is lost: who waits looks again when there is another. A wait
 * that asks nothing would never learn that there is none. */
void hf__zk_watches_down(struct zk *);
/* A lock is about to wait. */
void hf__zk_watches_begin(struct zk *);
/* In case a word is lost; and for those who pass (semaphore.c). */
void hf__zk_watches_move(struct zk *, hf__time now);
hf__time hf__zk_watches_timeout(const struct zk *);
/* The session is over: everybody looks anew. */
void hf__zk_watches_lost(struct zk *);

/* ---- node.c ----------------------------------------------------------- */

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
    bool held;       /* its lock's ask was granted by it */
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
/* One that is no entry of a lock's and that nobody wants any more: it is
 * deleted as the others are. */
void hf__zk_node_of_nobody(struct zk *, const char *path, uint8_t form);
/* Numbers it among those of its hold, instead of the server. */
void hf__zk_node_number(struct zk_node *, uint32_t number);
/* Sends the create; the parents before it, if asked to. Nobody is told of the
 * answer: afterwards it is THERE, UNSURE or GONE, as a list that was sent after
 * it will find it. */
int hf__zk_node_create(struct zk_node *, bool parents);
/* What it says of its owner, for those who look; the length. */
int hf__zk_node_describe(const struct zk_node *, char data[ZK_ABOUT_MAX]);
/* Its fixed lease begins now: for those who look. */
void hf__zk_node_date(struct zk_node *);
/* And anew, for that long: of all entries of the hold. */
void hf__zk_node_lease(struct zk_node *, uint32_t lease_ms);
/* Sends a list of its siblings. done is called with the node, if it is the last
 * list sent and the node is still wanted. */
int hf__zk_node_list(struct zk_node *, zk_done_fn *);
/* Both, in one go: PENDING, or why not. */
int hf__zk_node_enter(struct zk_node *, bool parents, zk_done_fn *listed);
/* Gives it that name; false: longer than the server's sequences are. */
bool hf__zk_node_set_name(struct zk_node *, const char *name);
/* Renames it and its form from write to read. */
void hf__zk_node_lower(struct zk_node *);
/* Its name below the lock's node. */
const char *hf__zk_node_name(const struct zk_node *);
/* Its lock's node; and the node there that all who want an unfair mutex try to
 * create. */
const char *hf__zk_node_dir(const struct zk_node *, char out[ZK_WHOLE_MAX]);
const char *hf__zk_node_unfair(const struct zk_node *, char out[ZK_WHOLE_MAX]);
/* Asks for its czxid: afterwards it is THERE, or GONE. */
int hf__zk_node_check(struct zk_node *);
/* UNSURE: looks for it in a list. True: found and THERE, its czxid is on the
 * way; else GONE. */
bool hf__zk_node_find(struct zk_node *, const struct String_vector *children);
/* The one of that hold id, if it is not gone yet; and if it is below the lock's
 * node: after 2^31 locks their ids are used again, and a hold may last. */
struct zk_node *hf__zk_node_of(struct zk *, uint64_t hold_id);
struct zk_node *hf__zk_node_below(const struct zk_lock *, uint64_t hold_id);
/* For cleanup.c: whether it is in the list, THERE or GONE. */
void hf__zk_node_match(struct zk_node *, const struct String_vector *children);
/* Forgets it; nothing is said to the server. */
void hf__zk_node_free(struct zk_node *);
/* Makes zk.nowhere, of this session. */
void hf__zk_nowhere(struct zk *);

/* ---- cleanup.c --------------------------------------------------------- */

/* Takes it and its siblings from their lock: they are deleted, and let_go, if
 * not NULL, reported when the last of them is gone. */
void hf__zk_node_drop(struct zk_node *, struct hf__req *let_go);
/* It is not there, or not ours. */
void hf__zk_node_vanished(struct zk_node *);
/* A call is answered that was counted in its `calls`. */
void hf__zk_node_called(struct zk_node *);
/* The same, counted already: if nobody wants it, the next step towards its end
 * is made, and it may be freed. */
void hf__zk_node_end_step(struct zk_node *);
/* That step is made later. */
void hf__zk_node_sweep_later(struct zk_node *);
/* The next step towards its end, if one can be made now. */
void hf__zk_node_sweep(struct zk_node *);
/* Once more, if a step could not be made then. */
void hf__zk_nodes_sweep(struct zk *, hf__time now);
/* The session is over; why, for people. */
void hf__zk_nodes_lost(struct zk *, const char *why);
void hf__zk_nodes_fini(struct zk *);

/* ---- addr.c ------------------------------------------------------------ */

struct zk_addrs {
    size_t len;      /* how many; in the text the first may be there twice */
    char text[4096]; /* "10.0.0.1:2181,::1:2181" */
};

/* What was found, as the library is to have it. */
void hf__zk_addrs(const struct hf__lookup *, struct zk_addrs *);

/* ---- words.c ----------------------------------------------------------- */

/* Before each call of the library on this thread, so that its words reach the
 * right client; NULL: nobody's. */
void hf__zk_speak_for(struct zk *);
/* For the library. */
void hf__zk_on_log(const char *line);
/* Whereto and why there is no connection. */
const char *hf__zk_why_down(struct zk *, char *out, size_t size);

/* ---- connect.c --------------------------------------------------------- */

/* It went down: names are looked up again, if it stays so for a while. */
void hf__zk_lookup_later(struct zk *, hf__time now);
/* If it is time for that. */
void hf__zk_lookup_again(struct zk *, hf__time now);
/* What was found is used, if it is of any use. */
void hf__zk_take_found(struct zk *);
/* When to call these two. */
hf__time hf__zk_lookup_timeout(const struct zk *);
/* The library has no connection, nor is it making one. */
bool hf__zk_is_closed(const struct zk *);
/* It is being opened: at how many addresses. */
void hf__zk_first_round(struct zk *, size_t addresses);
/* Then: an attempt has failed; is it worth another one? */
bool hf__zk_may_try_again(struct zk *);
/* When an attempt to connect has lasted for too long; and ends it then. */
hf__time hf__zk_late_at(const struct zk *);
void hf__zk_give_up_late(struct zk *, hf__time now);
/* Ends it if somebody else answers. */
void hf__zk_refuse_foreign(struct zk *);

/* ---- session.c -------------------------------------------------------- */

struct zk {
    const struct hf__core *core;
    hf_client *client;
    zhandle_t *zh;          /* NULL: lost, a new one is made at again_at */
    struct zk_addrs *addrs; /* the last that were found */
    struct hf__lookup *job; /* under way, or over; NULL */
    bool numeric;           /* there are no names to be looked up again */
    bool up;                /* connected, and let in: calls may be sent */
    bool greeting;          /* connected; the first word is under way */
    bool greeted;           /* and was answered */
    bool opened;            /* it was up once */
    bool closing;           /* callbacks touch nothing */
    bool moving;            /* within advance() */
    bool warned;            /* of a sequence that nears its end */
    bool said;              /* text is new */
    bool unwatched;   /* there was no room for own_fd: looked at by time */
    bool first_words; /* of this connection have been looked at */
    int open_code;    /* why it never was up */
    bool was_late;    /* while opening: one who might have answered */
    size_t untried;   /* while opening: addresses */
    hf__time open_until;
    int refusal;  /* while opening: what is worse than no answer */
    int fd;       /* the library's, which closes it; -1 */
    int own_fd;   /* ours for the same: what is watched; -1 */
    uint32_t tag; /* of own_fd */
    int interest;
    int ready;            /* of that, what can be done at once */
    uint32_t patience_ms; /* with an attempt to connect */
    uint32_t timeout_ms;  /* of the session, as negotiated */
    int64_t session_id;
    int parent_refusal;       /* why the last one was not made; or ZOK */
    uintptr_t refused_parent; /* which one: a hash of its path */
    hf__time timer;           /* the library's */
    hf__time lookup_at;       /* not up: names are looked up again */
    hf__time again_at;        /* without a handle: the next attempt */
    hf__time up_at;           /* since when it is, or was last */
    hf__time pause_until;     /* no connection is made before */
    uint32_t pause_ms;        /* and how long that was; it grows */
    hf__time starved_until;   /* no memory: nothing is sent to stay alive */
    hf__time sweep_at; /* what nobody wants is seen to again; 0: no need */
    hf__time connect_at;
    hf__time sent;       /* the last call of all, */
    hf__time used;       /* and of those outside of advance() */
    hf__time touched[8]; /* send times of calls that were answered */
    unsigned touched_at; /* of them, the newest */
    hf__time proved;     /* send time of the last write that was acknowledged */
    hf__time good_until; /* by that, the session lives */
    bool beating;        /* a beat is under way */
    uint8_t nudges;      /* questions sent because answers did not come */
    unsigned waiting;    /* locks in a queue, */
    unsigned waiting_latch; /* and those that wait for a latch */
    hf__time poll_at;       /* while there are any */
    uint32_t polls;         /* safety polls that are not answered yet */
    hf__time pass_at; /* when a lock that passes has done so for too long */

    struct zk_call *calls, *spare; /* under way, and memory for more */
    unsigned calls_len;
    struct zk_node *nodes;    /* all of this session */
    struct zk_chunk *chunks;  /* renewals under way */
    struct hf__table watches; /* by path */
    uintptr_t watch_ids;      /* so far */
    struct zk_query *queries; /* under way */
    struct zk_notify *listening;
    uint64_t holders; /* of unfair mutexes, so far: each has its own name */
    /* Requests of latches: the last that was sent, and before this session. */
    uint64_t latch_last, latch_before;
    int64_t latch_session;

    uint8_t salt[16]; /* of this session: hold ids become uuids by it */
    char nowhere[64]; /* a path where nothing is, of this session */
    char about[96];   /* what our entries say: "<pid>\n<host>\n", then the label
                       */
    char *hosts;      /* "h1:2181,h2:2181" */
    char *root;       /* "" or "/a/b": the URL's path */
    const struct ACL_vector *acl;
    uint32_t ttl_ms, open_timeout_ms;
    uint32_t tick_ms; /* of the servers, as the URL says; 0: it does not */
    bool kazoo;       /* dialect */
    bool listens;     /* the program hears of events */
    char *secret;     /* "user:password"; NULL: none */
    char text[120];   /* the library's last word: "host:port: why" */
    char cause[64];   /* why we end a connection: the library does not know */
};

int hf__zk_session_open(struct zk *);
void hf__zk_session_close(struct zk *);
void hf__zk_session_move(void *, hf__time now);
hf__time hf__zk_session_timeout(void *);

/* ---- socket.c --------------------------------------------------------- */

/* The library has closed the one it had. */
void hf__zk_socket_gone(struct zk *);
/* What has come for it. */
void hf__zk_socket_ready(struct zk *, uint32_t tag, uint32_t events);
/* No event comes for a descriptor that could not be watched: it is polled. */
void hf__zk_socket_poll(struct zk *);
/* It is this one, and the library waits for that. */
void hf__zk_socket_watch(struct zk *, int fd, int interest);
/* After something was sent: outside of advance() the library is made to write
 * it. */
void hf__zk_socket_sent(struct zk *);

/* ---- session_proof.c
 * ------------------------------------------------------------ */

/* It is connected: the leader has opened the session, or heard of it, after we
 * began to connect. */
void hf__zk_proof_begin(struct zk *);
/* The session is long enough for the servers' tick, if we know that. */
bool hf__zk_proof_fits(const struct zk *);
#define ZK_NUDGE (200 * HF__MS) /* so long an answer may take */
/* That part of the timeout. */
hf__time hf__zk_proof_part(const struct zk *, int of);
/* A call that was sent then is answered; by the leader, if it was a write. */
void hf__zk_proof_heard(struct zk *, hf__time sent_at, bool by_leader);
/* 0; or it is not sure to live long enough for a hold: when to look again. */
hf__time hf__zk_proof_doubt(const struct zk *);
/* For how long the session is sure to live, from then on. */
uint32_t hf__zk_proof_ms(const struct zk *, hf__time since);
/* zk.proved is good enough for a hold to begin. */
bool hf__zk_proof_is_good(const struct zk *);

/* ---- keepalive.c ------------------------------------------------------ */

void hf__zk_keepalive_move(struct zk *, hf__time now);
hf__time hf__zk_keepalive_timeout(const struct zk *);
/* Makes zk.proved good enough, if it is not; a fixed lease shall begin now. */
void hf__zk_keepalive_prove(struct zk *, const struct hf__req *);

/* ---- lock.c ---------------------------------------------------------- */

/* hf__remote.impl */
struct zk_lock {
    struct hf__remote *remote;
    struct zk *z;
    struct hf__req *attempt; /* the attempt under way */
    struct zk_node *node;    /* of the present question or hold: the first */
    struct zk_watch *watch;
    struct zk_lock *next, *prev; /* of those with the same watch */
    bool queued;                 /* counted in zk.waiting, or waiting_latch */
    bool deleted;                /* what it watched is gone */
    /* Of a try that watches who is before it: what is called instead of the
     * bell, at the latest then; NULL: the bell. */
    void (*passed)(struct zk_lock *);
    hf__time pass_until;
    bool blind; /* of a latch: what it wants to watch may not be read */
    /* The sum of the strangers that are known to last, and are harmless. */
    uint64_t strangers;
    struct zk_round *round; /* of a latch, that it waits for; or NULL */
    size_t path_len;
    char path[]; /* of the lock's node */
};

/* How a kind asks for its locks. An outcome; or PENDING: hf__zk_lock_answer()
 * will be called; or EUNKNOWN: not connected, ask again when it is. */
typedef int zk_attempt_fn(struct zk_lock *, struct hf__req *);

zk_attempt_fn hf__zk_queue_attempt;     /* mutex, read-write lock */
zk_attempt_fn hf__zk_semaphore_attempt; /* semaphore */
zk_attempt_fn hf__zk_latch_attempt;     /* latch */

int hf__zk_lock_attach(void *self, struct hf__remote *);
void hf__zk_lock_detach(void *self, struct hf__remote *);
int hf__zk_lock_attempt(const struct zk *, struct hf__req *,
                        zk_attempt_fn *begin);
int hf__zk_lock_release(void *self, struct hf__req *);
int hf__zk_lock_abandon(void *self, struct hf__req *);
/* Of its hold something is not there any more: nothing of it is left, and the
 * core is told. From advance() only. */
void hf__zk_taken_away(struct zk_lock *);
/* HF_EMISMATCH, with what that child of the name's node is an entry of. */
int hf__zk_used_as(struct zk *, const char *child);
/* The code for a call that was refused, with its text; that right is needed for
 * it: "READ", "CREATE below" ... the path. */
int hf__zk_denied(struct zk *, int rc, const char *right, const char *path);
/* The code for a name that hf__zk_path() refuses; `what' it is: "name". */
int hf__zk_bad_name(struct zk *, const char *what, const char *name,
                    size_t len);
/* The code for a node that could not be made. */
int hf__zk_not_made(const struct zk_node *);
/* Of a lock's ask, or any other request. */
void hf__zk_finish(struct zk *, struct hf__req *, int result);
/* The lock's ask has come to this outcome, unless it is PENDING. What was
 * refused, or is BUSY, keeps no node; with EUNKNOWN it stays, and the core asks
 * again or abandons it. */
void hf__zk_lock_answer(struct zk_lock *, int rc);
/* Its parents, which the server sweeps when they are empty, are missing: they
 * are to be made once more. */
bool hf__zk_lock_parents_again(struct zk_node *);
/* Nothing shall ring for it any more. */
void hf__zk_lock_stop_waiting(struct zk_lock *);
/* The lock's node is the hold: GRANTED, for finish() or to be returned; QUEUED,
 * if the session is in doubt. */
int hf__zk_lock_granted(struct zk_lock *, struct hf__req *);
/* The node of this question; NULL: the lock has none. One of an earlier
 * question is dropped. */
struct zk_node *hf__zk_lock_node(struct zk_lock *, const struct hf__req *);
/* The lock's watch will ring: QUEUED. */
int hf__zk_lock_queued(struct zk_lock *, struct hf__req *);

/* ---- foreign_entries.c
 * ------------------------------------------------------- */

/* Sees to those below the lock's path, for its node. 0: they are known, and
 * hf__zk_child_stats_known() tells which are ephemeral. PENDING: they were
 * asked for, and are known to whoever lists again now. Or a code. */
int hf__zk_foreign_entries_check(struct zk_node *,
                                 const struct String_vector *children,
                                 enum zk_rule, int64_t seq);

/* ---- child_stats.c
 * ------------------------------------------------------------ */

/* Asks for a child of the lock's path, if it is not known. 0, or a code. */
int hf__zk_child_stat_request(struct zk_node *, const char *name);
/* Asks for all with the node's own sequence: PENDING, they are known to whoever
 * lists again now; or a code. */
int hf__zk_child_stats_request_tied(struct zk_node *,
                                    const struct String_vector *children);
/* It was asked for, and what it is is not known yet. */
bool hf__zk_child_stat_is_open(const struct zk_node *, const char *name);
/* What is known of the children, as hf__zk_place() wants it, to be freed; NULL:
 * nothing. 0, or a code: there is no memory for it, or the server has refused
 * to tell of one of them. Nobody's place is known then. */
int hf__zk_child_stats_known(const struct zk_node *,
                             const struct String_vector *children,
                             int64_t **czxid);
/* For a child that had gone when it was asked for: as one that lasts it does
 * not count. No transaction that creates a node has the number 1. */
#define ZK_CHILD_GONE (-1)
/* What was learned is about the time before a new entry; what is under way
 * keeps its memory until it is answered, but nothing finds it any more. */
void hf__zk_node_forget_child_stats(struct zk_node *);

/* ---- rwlock.c, renew.c, query.c, inspect.c ---------------------------------
 */

int64_t hf__zk_wall_ms(void);
int hf__zk_downgrade_query(struct zk *, struct hf__query *);
/* Tells (again) that the node, which is `lowered`, is one for reading now. */
int hf__zk_lower(struct zk_node *node, zk_done_fn *done, void *owner);
/* What the answer means: DONE, ENOTOWNER, EUNKNOWN ... */
int hf__zk_lower_result(struct zk_node *, int rc);
/* The other name of a node that is `lowered`. */
void hf__zk_node_unlowered(const struct zk_node *, char out[ZK_WHOLE_MAX]);
void hf__zk_renew_fini(struct zk *);
int hf__zk_renew(void *self, struct hf__batch *);
void hf__zk_queries_fini(struct zk *);
/* What that lock asked is for nobody any more. */
void hf__zk_queries_leave(struct zk *, const struct zk_lock *);

/* ---- changes.c ---------------------------------------------------------- */

int hf__zk_changes_listen(struct zk *, struct hf__query *);
void hf__zk_changes_unlisten(void *self, struct hf__listener *);
/* Sets the watches that are due; all, if it was down. */
void hf__zk_changes_move(struct zk *);
/* The session is over. */
void hf__zk_changes_lost(struct zk *);

/* ---- notify.c --------------------------------------------------------------
 */

/* The node is held: its holder wants to hear if it is asked for, or if one of
 * its siblings goes. */
void hf__zk_notify_listen(struct zk_node *);
/* It was granted unseen: is it there? If not, its holder is told. */
void hf__zk_notify_confirm(struct zk_node *);
void hf__zk_node_stop_notify(struct zk_node *);
/* The session is over. */
void hf__zk_notify_fini(struct zk *);

#endif
