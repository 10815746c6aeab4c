/*
 * etcd: the lock of Go's concurrency.Mutex and of `etcdctl lock`.
 *
 * Files: etcd.c the table, open and close; session.c the connection, its
 * greeting, the lease. entry.c keys and values; txn.c transactions. lock.c
 * the core's slots, step by step; entry_request.c their requests, answer.c what
 * these come to, fixed_lease.c fixed leases. watch.c who tells a waiter,
 * safety_poll.c the looks in between, changes.c those who listen. renew.c
 * renewals. query.c questions: inspect.c, list.c, put.c, latch.c, diagnose.c.
 *
 * A client has one lease, whose id it has chosen at random. Under it are
 *
 *   ROOT holdfast:client/LEASE   the guard: it says who the client is
 *   ROOT NAME/LEASE              its entry in the queue of NAME, as Go's; those
 *                                of other kinds of locks are in entry.h
 *   ROOT holdfast:ask            if it was the last one to ask holders to let
 *                                go: their tokens. All who listen watch it
 *
 * where LEASE is the id in hexadecimal. Entries are ordered by their create
 * revision: the oldest holds the lock, and its create revision is the token.
 * Of what is below NAME/ only that counts which could be an entry, so that
 * NAME/OTHER is a lock of its own.
 *
 * What makes lost answers harmless. A request that was not answered in time may
 * be done much later, and requests overtake each other.
 * - ENTER makes the entry only if there is none and if the guard has not been
 *   written since (its mod revision is compared). SETTLE writes the guard
 *   again, so that no earlier ENTER can still succeed.
 * - LOOK, DROP and the checks of a renewal are about one create revision. An
 *   entry that was made anew has another one.
 * - MOVE, which writes an entry, is about one mod revision as well.
 * - All ends with the lease. Its deadline counts from sending what the server
 *   has confirmed.
 * - At most one request of an attempt or a release is under way for an entry.
 *   What comes meanwhile waits in its lock, and a release waits for what the
 *   holder writes.
 *
 * Everything runs with the client's mutex held.
 */
#ifndef HF_ETCD_H
#define HF_ETCD_H

#include "backends/common/table.h"
#include "net/grpc/grpc.h"

#include "entry.h"
#include "etcd.pb-c.h"

#include <stddef.h>

#define ET_CALL_MS 1500       /* of a request: then the same is sent again */
#define ET_ANSWER (4u << 20)  /* no answer of ours is longer, */
#define ET_MEMORY (16u << 20) /* nor needs more memory when it is read */
#define ET_KEY_MAX (HF_NAME_MAX + 300)
#define ET_WISHES 336    /* no text of tokens that are asked for is longer */
#define ET_MARK '+'      /* behind the key of a writer: its mark's */
#define ET_CHECKS 32     /* entries that are looked at in a transaction */
#define ET_VIEW_MAX 1024 /* entries that are looked at in one go */
#define ET_ROOM 512      /* for answers, in max_align_t */
#define ET_KEPT 8        /* keep-alives under way */
#define ET_WATCHES 2     /* of a lock */
#define ET_POLLED 32     /* locks that are looked at in a transaction */

struct etcd;
struct et_changes;
struct et_query;
struct et_watch;

/* What the server knows of an entry, as far as we do. */
struct et_lock {
    struct et_lock *next, *prev; /* etcd.locks */
    struct etcd *e;
    struct hf__remote *remote;
    uint64_t hold_id; /* of the entry */
    int64_t rev;      /* its create revision; 0: not known */
    int64_t mod;      /* when it was last written, as far as we know */
    int64_t lease;    /* of a fixed lease; 0: it is under the client's, */
    int64_t moving;   /* or perhaps under this one; 0 */
    int64_t since_ms; /* when it was made or granted, by the wall clock */
    uint8_t form;     /* enum et_form */
    uint8_t other;    /* of its verdict EMISMATCH: what was found, */
    uint32_t size;    /* and how large that semaphore is */
    int16_t verdict; /* it is being dropped, and then the attempt comes to this;
                        0: it is not */
    bool maybe;      /* rev is 0: there may be one all the same */
    bool doubt;      /* an ENTER may be done yet */
    bool is_late;    /* the entry that was held is gone, and an ENTER that came
                        late has made the one with rev: it is dropped */
    bool is_marked;  /* its mark is there, or may be */
    bool owes_mark;  /* it is not known to be */
    bool is_held;    /* it was granted */
    bool is_queued;  /* the core waits for a bell */
    bool is_first;   /* it is granted once the lease is proved */
    bool is_behind;  /* its attempt waits for the DROP of another lock */
    bool is_fresh;   /* its ENTER has found the entries before it */
    bool is_left;    /* its session is over, and it is there: it is dropped */
    bool waits;      /* it rings when what is watched goes */
    uint8_t rechecks; /* since a watch was made */
    int64_t round;    /* of a latch: its create revision; 0 */
    int64_t wanted;   /* somebody asked for the entry of that create revision */
    struct hf__req *attempt;      /* the one that is pending; NULL */
    struct hf__req *let_go;       /* a release or an abandon; NULL */
    struct et_request *under_way; /* about this entry; NULL */
    unsigned writes; /* of its holder that are under way: a DROP waits */
    struct et_watch
        *watch[ET_WATCHES]; /* the first is waited for, if `waits` */
    struct et_watch *own;   /* on its own entry, if the program hears of
                               events; NULL */
    int64_t view;           /* the revision at which that was there */
    int64_t before;         /* and when it had been written */
    uint32_t poll_no;       /* the last round that has looked at it */
    size_t key_len;         /* with ROOT and what an entry has behind NAME/ */
    size_t dir_len;         /* up to there */
    char key[];
};

/* Those that wait are looked at once in a while. */
struct et_poll {
    struct grpc_call call;
    hf__time at; /* the next one; HF__NEVER: nobody waits */
    uint32_t no;
    bool any;         /* somebody waits */
    bool has_checked; /* the server, in this round */
    size_t len;
    struct et_polled {
        uint64_t hold_id;
        int64_t rev, before; /* as those of its lock */
        bool has_mark;
    } lock[ET_POLLED]; /* under way */
};

/* What was read before our entry. */
struct et_ahead {
    uint8_t other;    /* enum et_form: one of another kind; or PERMIT, */
    uint32_t size;    /* of a semaphore of that size */
    uint64_t permits; /* of all of them */
    int64_t mod;      /* when that was written: */
    size_t len;       /* the youngest that we have to wait for; 0: none */
    char before[ET_KEY_MAX];
};

enum et_op {
    ET_ENTER,
    ET_READ_QUEUE,
    ET_READ_MARK,
    ET_COUNT,
    ET_CONFIRM,
    ET_DROP,
    ET_RENEW,
    ET_TOUCH,
    ET_WRITE_MARK,
    ET_TERM,
    ET_MOVE,
    ET_REVOKE
};

/* A request about entries. */
struct et_request {
    struct grpc_call call; /* first: callbacks cast it back */
    struct et_request *next, *prev;
    enum et_op op;
    struct et_lock *lock;    /* NULL: nobody wants to hear of it any more */
    int64_t below, limit;    /* of a view */
    struct et_ahead ahead;   /* what was seen so far, */
    int64_t view;            /* at this revision; 0: at that of the answer */
    struct hf__batch *batch; /* RENEW, or of a TERM that a renewal wants: */
    size_t from, len;        /* these of its items */
    int64_t rev, lease;      /* TERM, MOVE: of this entry, to this lease */
    uint32_t lease_ms;
};

struct etcd {
    const struct hf__core *core;
    hf_client *client;
    struct net_endpoint peer;
    struct grpc g;
    uint32_t tags;
    char *root;    /* "", or "a/b/" */
    char *ask_key; /* what is written to it asks holders to let go */
    char *user, *password;
    uint32_t ttl_s;
    uint32_t op_timeout_ms;
    char about[160];
    ProtobufCAllocator memory; /* for an answer, while it is read */
    bool is_short;             /* there was none */
    struct et_room {
        size_t used, parts; /* parts: elsewhere, too */
        size_t bytes;       /* of all of them */
        max_align_t data[ET_ROOM];
    } room;

    /* The session. */
    int64_t lease;          /* 0: none */
    bool is_granted;        /* the server has it */
    uint32_t term_ms;       /* what the server granted */
    hf__time proved;        /* when that was sent by which it lives */
    hf__time grant_sent_at; /* when the last of these was sent */
    int64_t guard;          /* the guard's mod revision */
    size_t guard_len;
    char guard_key[ET_KEY_MAX];
    struct grpc_call sign_in, get_version, grant, put_guard, keep, watch;
    bool is_guarded;           /* this greeting has come so far */
    hf__time keep_at;          /* when to send the next keep-alive */
    hf__time kept_at[ET_KEPT]; /* when those that are under way were */
    unsigned kept_len;
    struct hf__table watches; /* by their ids */
    int64_t watch_ids;
    struct et_watch *guard_watch; /* NULL: to be made */
    struct et_watch *ask_watch;   /* the same, if the program hears of events */
    int64_t heard;                /* what is asked later is to be heard */
    int64_t kept_rev;             /* of the cluster, at the last keep-alive */
    bool lacks_watch;             /* changes have none, or ask_watch is NULL */
    hf__time watch_at;            /* then */
    hf__time stream_at;           /* no stream of watches is opened before */

    struct et_poll poll;

    struct et_lock *locks;
    struct et_query *queries;
    struct et_changes *changes;
    struct et_request *requests; /* under way */
    size_t drops;                /* of these delete an entry */
    struct et_request *spare;    /* their memory, with its buffers */
    struct hf__batch *batches;   /* renewals that wait for a keep-alive */
    bool put_doubt;              /* a value may yet be written */
    int64_t latch_lease;         /* under which marks were made, */
    uint64_t latch_before;       /* and up to which request under another one */
    uint64_t latch_last;
    bool put_off; /* a slot has said LATER: we owe a go_on() */
    bool was_up;  /* ever */
    bool listens; /* the program hears of events */
    bool is_closing;
};

/* ---- session.c ---------------------------------------------------------- */

extern const struct grpc_owner hf__et_owner;

int hf__et_session_init(struct etcd *);
void hf__et_session_fini(struct etcd *);
/* Revokes the lease, and waits for the answer for a moment. */
void hf__et_session_close(struct etcd *);
void hf__et_session_move(struct etcd *, hf__time now);
hf__time hf__et_session_timeout(const struct etcd *);
/* Asks for a keep-alive now. */
void hf__et_keep(struct etcd *, hf__time now);
/* The lease is gone, and the connection ends. The next one has another lease.
 * 0, or a code, for callbacks. */
int hf__et_session_over(struct etcd *, const char *why);
/* What a refusal of the server means; its text is set. */
int hf__et_refusal(struct etcd *, const struct grpc_call *);
/* An answer cannot be read: EPROTO, or ENOMEM, which ends the connection. */
int hf__et_odd(struct etcd *);
int64_t hf__et_wall_ms(void);
/* Message to call. 0, HF_ENOMEM. */
int hf__et_pack(struct grpc_call *, const void *message);

/* ---- entry_request.c
 * -------------------------------------------------------------- */

/* 0: under way. HF__LATER, HF_ENOMEM. */
int hf__et_enter(struct et_lock *);
int hf__et_read_queue(struct et_lock *);
/* READ: is the writer that was seen marked? */
int hf__et_read_mark(struct et_lock *, const struct et_ahead *);
/* LATCH: is it set? */
int hf__et_count(struct et_lock *);
/* Nobody waits for the answers of these. PERMIT: tells the next one. */
void hf__et_touch(struct et_lock *);
/* WRITE: that it reads now is told with that item of a renewal. */
int hf__et_write_mark(struct etcd *, struct hf__batch *, size_t item);
void hf__et_wipe(struct etcd *, const char *key, size_t len);
/* Deletes the entry, also one that may yet be made. */
int hf__et_drop(struct et_lock *);
bool hf__et_is_dropped(const struct et_lock *);
/* The same of an entry that the lock is about to forget. */
void hf__et_leave(struct et_lock *);
int hf__et_check(struct etcd *, struct hf__batch *, size_t from, size_t len);
/* Nobody wants to hear of what is under way: it is as if it was lost. */
void hf__et_request_forget(struct et_lock *);
void hf__et_requests_fini(struct etcd *);
/* It refuses, and may have done it all the same. */
bool hf__et_is_unsure(const struct grpc_call *);
/* A code, if another member may know better; else 0. */
int hf__et_leave_member(struct etcd *, const struct grpc_call *);

/* ---- fixed_lease.c
 * ------------------------------------------------------------- */

/* Can it have a lease of its own? */
bool hf__et_has_term(const struct et_lock *);
/* Gives it one, for the attempt. As those above. */
int hf__et_term(struct et_lock *);
/* And another one, for that item of a renewal. */
int hf__et_term_anew(struct etcd *, struct hf__batch *, size_t item);
void hf__et_revoke(struct etcd *, int64_t lease);

/* ---- lock.c --------------------------------------------------------------
 */

int hf__et_attach(void *, struct hf__remote *);
void hf__et_detach(void *, struct hf__remote *);
int hf__et_attempt(void *, struct hf__req *);
int hf__et_release(void *, struct hf__req *);
int hf__et_abandon(void *, struct hf__req *);
void hf__et_finish(struct etcd *, struct hf__req *, int result);
/* The one that has that hold, or NULL. */
struct et_lock *hf__et_lock_of(const struct etcd *, uint64_t hold_id);
/* There is no connection, or requests wait for it: a slot answers LATER. */
bool hf__et_is_down(struct etcd *);
/* A slot has sent something for the request. */
void hf__et_sent(struct etcd *, const struct hf__req *);
/* How a request about the lock has ended: the next one, or an answer. */
void hf__et_entered(struct et_lock *, int code);
void hf__et_queue_read(struct et_lock *, int code, const struct et_ahead *,
                       int64_t view);
void hf__et_mark_read(struct et_lock *, const struct et_ahead *,
                      bool is_blocked, int64_t view);
/* LATCH: its create revision, or 0. */
void hf__et_counted(struct et_lock *, int64_t round, int64_t mod, int64_t view);
void hf__et_dropped(struct et_lock *, int code, bool was_there);
/* It has a lease of its own now. */
void hf__et_granted(struct et_lock *);
/* Nothing of it reached the server. */
void hf__et_unsent(struct et_lock *);
/* What its holder writes begins, and is over. */
void hf__et_writes(struct et_lock *);
void hf__et_has_written(struct et_lock *);
/* The entry is gone: somebody has deleted it. */
void hf__et_lock_taken(struct et_lock *);
/* The session has ended, with the entry. */
void hf__et_lock_over(struct et_lock *, const char *why);
/* A keep-alive was confirmed: those that waited for it are granted. false: some
 * wait for a later one. */
bool hf__et_locks_proved(struct etcd *);
void hf__et_locks_up(struct etcd *);
/* The connection has ended: what was not under way is EUNKNOWN, too. */
void hf__et_locks_down(struct etcd *);

/* ---- watch.c --------------------------------------------------------------
 */

extern const struct grpc_method hf__et_watch;

enum et_wait {
    ET_GONE,    /* it goes */
    ET_WRITTEN, /* or is written */
    ET_PAIR,    /* or its mark is */
    ET_BELOW,   /* something that begins so goes */
    ET_ALL,     /* or is written */
};

/* Rings when that happens to the key, as it was at the revision `view`, last
 * written at `mod`. */
void hf__et_wait(struct et_lock *, enum et_wait, const char *key, size_t len,
                 int64_t mod, int64_t view);
void hf__et_unwait(struct et_lock *);
void hf__et_ring(struct et_lock *);
/* What is waited for, with an ET_MARK behind it; NULL: nothing is watched. */
const char *hf__et_watched(const struct et_lock *, enum et_wait *, size_t *len);
/* It keeps no watch any more. */
void hf__et_unwatch(struct et_lock *);
/* It is held: tells if somebody deletes it. */
void hf__et_watch_own(struct et_lock *);
/* Sees to it that the guard is watched. */
void hf__et_watch_guard(struct etcd *, hf__time now);
hf__time hf__et_watch_timeout(const struct etcd *);
/* For changes; *place is NULL when it has ended. */
void hf__et_watch_changes(struct etcd *, struct et_changes *,
                          struct et_watch **place, const char *key, size_t len);
void hf__et_watch_end(struct etcd *, struct et_watch *);
/* What was asked up to that revision has been heard. */
void hf__et_heard(struct etcd *, int64_t revision);
/* A keep-alive was answered at that revision. */
void hf__et_heard_all(struct etcd *, int64_t revision);
/* The stream is gone. */
void hf__et_watches_down(struct etcd *);
/* There are no locks any more. */
void hf__et_watches_fini(struct etcd *);

/* ---- safety_poll.c
 * ------------------------------------------------------------ */

void hf__et_poll_init(struct etcd *);
void hf__et_poll(struct etcd *, hf__time now);
hf__time hf__et_poll_timeout(const struct etcd *);
/* Somebody waits. */
void hf__et_poll_wanted(struct etcd *);

/* ---- query.c --------------------------------------------------------------
 */

int hf__et_query(void *, struct hf__query *);
void hf__et_queries_fini(struct etcd *);

/* ---- changes.c --------------------------------------------------------------
 */

void hf__et_unlisten(void *, struct hf__listener *);
void hf__et_changes_up(struct etcd *);
void hf__et_changes_down(struct etcd *);
void hf__et_changes_fini(struct etcd *);
/* Its watch was confirmed; a key was written or deleted; it was refused. */
void hf__et_changes_confirmed(struct etcd *, struct et_changes *);
void hf__et_changes_written(struct etcd *, struct et_changes *, const char *key,
                            size_t len);
void hf__et_changes_refused(struct etcd *, struct et_changes *,
                            const char *why);

/* ---- renew.c ---------------------------------------------------------------
 */

int hf__et_renew(void *, struct hf__batch *);
void hf__et_checked(const struct et_request *, int code, const bool *gone);
/* A keep-alive was confirmed. */
void hf__et_renew_kept(struct etcd *);
/* It will not be: those who wait for it hear the code. */
void hf__et_renew_failed(struct etcd *, int code);

#endif
