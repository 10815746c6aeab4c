/*
 * The state of one lock at the server: its entry, the request under way for it,
 * and the core's requests that wait for the outcome. It belongs to the core's
 * hf__remote (remote->impl) from attach to detach. lock.c changes it.
 */
#ifndef HF_ETCD_LOCK_STATE_H
#define HF_ETCD_LOCK_STATE_H

#include "backends/backend.h"

struct etcd;
struct et_request;
struct et_watch;

#define ET_WATCHES 2 /* watches that a lock keeps */
/* pauses between attempts of a waiter (looks); the last repeats */
#define ET_LOOKS 4

/*
 * The state of a lock:
 *
 *   state    requests under way for it       fields that mean something
 *   -----    -------------------------       --------------------------
 *   RESTING  none; of an attempt: ENTER,     rev, maybe, doubt; verdict while
 *            READ_QUEUE, READ_MARK, COUNT;   an attempt is given up
 *            of a release, an abandon or an
 *            attempt that fails: CONFIRM,
 *            DROP
 *   QUEUED   none; then those of the next    the same; watch[0], view: it rings
 *            attempt, as RESTING             when that changes; looks; round
 *   RUNG     as QUEUED                       the same; it has rung
 *   HELD     none; of an attempt with        rev; own, wanted; mark,
 *            another hold id: CONFIRM, DROP  writes; is_fixed
 *
 *   RESTING -> QUEUED <-> RUNG; each of the three -> HELD -> RESTING. (A QUEUED
 *   lock was not rung if the core sends its attempt again because it is time.)
 *   A lock whose attempt ends otherwise is RESTING again.
 *
 * A request of a renewal is not under way for the lock: it belongs to a batch.
 */
enum et_lock_state {
    ET_RESTING,
    ET_QUEUED, /* the core waits for a bell */
    ET_RUNG,   /* the bell has rung: the core will send another attempt */
    ET_HELD,
};

/*
 * What the next step of a pending attempt waits for:
 *
 *   awaits  attempt  under way                           rev
 *   ------  -------  ---------                           ---
 *   ANSWER  any      any                                 any
 *   DROP    pending  nothing of this lock; the DROP of   0
 *                    another lock of the same name
 *   PROOF   pending  nothing of this lock; a keep-alive  not 0: no entry is
 *                    of the client                       before it
 *
 * With DROP and PROOF the state is RESTING, QUEUED or RUNG. DROP may be left
 * over after the attempt has ended, and has no meaning then.
 */
enum et_awaits { ET_AWAITS_ANSWER, ET_AWAITS_DROP, ET_AWAITS_PROOF };

/* The mark of a writer that only reads now. */
enum et_mark {
    ET_UNMARKED,
    ET_MARK_OWED, /* the mark may exist; the next renewal writes it */
    ET_MARKED,    /* the mark exists */
};

/*
 * What the client knows about the entry, in any state (x: set; -: not set; any:
 * either):
 *
 *   rev  maybe  doubt  is_late
 *    -     -      -       -     there is none
 *    -     x     any      -     there may be one
 *    -     -      x       -     there is none; an ENTER may still make one
 *    x     -     any      -     there is one
 *    x     -     any      x     there is one, but not the one that was held: it
 *                               was made by an ENTER that was carried out late,
 *                               and is being dropped
 */
struct et_lock {
    struct et_lock *next, *prev; /* etcd.locks */
    struct etcd *e;
    struct hf__remote *remote;
    enum et_lock_state state;
    enum et_awaits awaits;
    uint64_t hold_id; /* of the entry */
    int64_t rev;      /* create revision of the entry; 0: not known */
    int64_t since_ms; /* when it was made or granted, by the wall clock */
    uint8_t form;     /* enum et_form */
    uint8_t other;    /* EMISMATCH: the form that was found */
    uint32_t size;    /* EMISMATCH: the size of that semaphore, or 0 */
    int16_t verdict;  /* the attempt ends with this code once the entry is
                         dropped; 0: none */
    bool maybe, doubt, is_late; /* see the table above */
    bool is_fixed; /* the hold has a fixed lease, which the core ends */
    enum et_mark mark;
    bool is_fresh;  /* the ENTER's answer had the entries before ours */
    uint8_t looks;  /* times queued since a watch was made; ET_LOOKS at most */
    int64_t round;  /* create revision of the latch that is waited for; 0 */
    int64_t wanted; /* the create revision for which hf_ask was heard */
    struct hf__req *attempt;      /* the pending one; NULL */
    struct hf__req *let_go;       /* a release or an abandon; NULL */
    struct et_request *under_way; /* about this entry; NULL */
    unsigned writes; /* unanswered writes of the holder; a DROP waits */
    struct et_watch *watch[ET_WATCHES]; /* a QUEUED lock waits for the first */
    struct et_watch *own; /* on its own entry, if the program listens; NULL */
    int64_t view;         /* revision of the queue when watch[0] was chosen */
    size_t key_len;       /* of key: ROOT, NAME/ and what follows */
    size_t dir_len;       /* of ROOT and NAME/ */
    char key[];
};

/* True if there is an entry, or may be one. */
static inline bool hf__et_may_be_there(const struct et_lock *l)
{
    return l->rev || l->maybe || l->doubt;
}

/* True if the lock's last attempt ended as QUEUED. */
static inline bool hf__et_is_queued(const struct et_lock *l)
{
    return l->state == ET_QUEUED || l->state == ET_RUNG;
}

/* True if the core repeats the attempt only because no event came for a
 * while. */
static inline bool hf__et_is_safety_look(const struct et_lock *l)
{
    return l->state == ET_QUEUED && l->looks == ET_LOOKS;
}

/* A lock that waits, or is held, becomes RESTING; in any other state it
 * stays. */
static inline void hf__et_unqueue(struct et_lock *l)
{
    if (hf__et_is_queued(l))
        l->state = ET_RESTING;
}

static inline void hf__et_unhold(struct et_lock *l)
{
    if (l->state == ET_HELD)
        l->state = ET_RESTING;
}

/* Ends an attempt's wait for a proof, if it waits for one. */
static inline void hf__et_unproved(struct et_lock *l)
{
    if (l->awaits == ET_AWAITS_PROOF)
        l->awaits = ET_AWAITS_ANSWER;
}

/* Returns the lock that has this hold id, or NULL. */
struct et_lock *hf__et_lock_of(const struct etcd *, uint64_t hold_id);
/* The entry was deleted. */
void hf__et_lock_taken(struct et_lock *);
/* The client's lease has ended, and the entry with it. Reports a loss to the
 * core if the lock was held. */
void hf__et_lock_over(struct et_lock *, const char *why);
/* Reports the result of a request of the core, which the lock then forgets. */
void hf__et_finish(struct etcd *, struct hf__req *, int result);

#endif
