/*
 * The backend's record of one lock: the state of its entry at the server, the
 * request under way for it, and the core's requests that wait for the outcome.
 * It belongs to the core's hf__remote (remote->impl) from attach to detach.
 * lock.c changes it.
 */
#ifndef HF_ETCD_LOCK_STATE_H
#define HF_ETCD_LOCK_STATE_H

#include "backends/backend.h"

struct etcd;
struct et_request;
struct et_watch;

#define ET_WATCHES 2 /* at most this many watches on other entries */
/* The number of pauses in lock_queue(). A waiter repeats its attempt (looks)
 * after each of these pauses in turn, and from then on always after the last
 * pause. */
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
 *   QUEUED   none; then those of the next    the same; watch[0], view: the bell
 *            attempt, as RESTING             rings after an event; looks; round
 *   RUNG     as QUEUED                       the same; the bell has rung
 *   HELD     none; of an attempt with        rev; own, wanted; mark,
 *            another hold id: CONFIRM, DROP  writes; is_fixed
 *
 *   RESTING -> QUEUED <-> RUNG; each of the three -> HELD -> RESTING
 *
 * A lock is still QUEUED, not RUNG, if the core repeats the attempt at poll_at.
 * A QUEUED or RUNG lock becomes RESTING when its attempt ends with a verdict
 * (BUSY, EMISMATCH) or as a granted latch, when the attempt is abandoned, or
 * when an attempt with another hold id begins. If the attempt fails in any
 * other way, the state stays.
 *
 * A request of a renewal is not under way for the lock: it belongs to a batch.
 */
enum et_lock_state {
    ET_RESTING,
    ET_QUEUED, /* the core waits for the bell */
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
 * If awaits is DROP or PROOF, the state is RESTING, QUEUED or RUNG. After the
 * attempt has ended, awaits may still be DROP, which has no meaning then.
 */
enum et_awaits { ET_AWAITS_ANSWER, ET_AWAITS_DROP, ET_AWAITS_PROOF };

/* What is known of the mark of a downgraded writer. */
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
 *    -     -      -       -     no entry exists
 *    -     x     any      -     an entry may exist
 *    -     -      x       -     none exists; an ENTER may still create one
 *    x     -     any      -     an entry exists
 *    x     -     any      x     an entry exists, but not the one that was held:
 *                               an ENTER that was carried out late has created
 *                               it, and it is being dropped
 */
struct et_lock {
    struct et_lock *next, *prev; /* etcd.locks */
    struct etcd *e;
    struct hf__remote *remote;
    enum et_lock_state state;
    enum et_awaits awaits;
    uint64_t hold_id; /* hold id of the entry */
    int64_t rev;      /* create revision of the entry; 0 if not known */
    int64_t since_ms; /* when the entry was created, or the lock granted, by the
                         wall clock */
    uint8_t form;     /* enum et_form */
    uint8_t other;    /* EMISMATCH: the form of the entry that was found */
    uint32_t size;    /* EMISMATCH: size of the semaphore found, or 0 */
    int16_t verdict;  /* code with which the attempt ends once the entry is
                         dropped, or 0 */
    bool maybe, doubt, is_late; /* see the table above */
    bool is_fixed; /* the hold has a fixed lease, which the core ends */
    enum et_mark mark;
    bool is_fresh;  /* the last read of the queue was part of the ENTER */
    uint8_t looks;  /* times queued with this watch; ET_LOOKS at most */
    int64_t round;  /* create revision of the latch that the lock waits for; or
                       0 */
    int64_t wanted; /* the create revision that an hf_ask has named */
    struct hf__req *attempt;      /* the pending attempt; or NULL */
    struct hf__req *let_go;       /* the pending release or abandon; or NULL */
    struct et_request *under_way; /* the request about this entry; or NULL */
    unsigned writes; /* the holder's unanswered writes; a DROP waits for them */
    struct et_watch *watch[ET_WATCHES]; /* a QUEUED lock waits for an event of
                                           the first */
    struct et_watch *own;               /* on the lock's own entry; or NULL */
    int64_t view;   /* revision at which the queue was read before watch[0] was
                       chosen */
    size_t key_len; /* length of `key`: ROOT, NAME/ and the rest */
    size_t dir_len; /* length of ROOT and NAME/ */
    char key[];
};

/* Returns true if an entry exists, may exist, or may still be created. */
static inline bool hf__et_may_be_there(const struct et_lock *l)
{
    return l->rev || l->maybe || l->doubt;
}

/* Returns true if the lock's last attempt ended as QUEUED. */
static inline bool hf__et_is_queued(const struct et_lock *l)
{
    return l->state == ET_QUEUED || l->state == ET_RUNG;
}

/* Returns true if the core repeats the attempt only because no event came for a
 * while. */
static inline bool hf__et_is_safety_look(const struct et_lock *l)
{
    return l->state == ET_QUEUED && l->looks == ET_LOOKS;
}

/* Makes the lock RESTING if it waits; otherwise does nothing. */
static inline void hf__et_unqueue(struct et_lock *l)
{
    if (hf__et_is_queued(l))
        l->state = ET_RESTING;
}

/* Makes the lock RESTING if it is held; otherwise does nothing. */
static inline void hf__et_unhold(struct et_lock *l)
{
    if (l->state == ET_HELD)
        l->state = ET_RESTING;
}

/* Ends the wait of an attempt for a proof, if it waits for one. */
static inline void hf__et_unproved(struct et_lock *l)
{
    if (l->awaits == ET_AWAITS_PROOF)
        l->awaits = ET_AWAITS_ANSWER;
}

/* Returns the lock that has this hold id, or NULL. */
struct et_lock *hf__et_lock_of(const struct etcd *, uint64_t hold_id);
/* Notes that the entry was deleted. */
void hf__et_lock_taken(struct et_lock *);
/* Notes that the client's lease has ended, and the entry with it. Reports a
 * loss to the core if the lock was held. */
void hf__et_lock_over(struct et_lock *, const char *why);
/* Reports the result of a request of the core. After that, the lock no longer
 * refers to the request. */
void hf__et_finish(struct etcd *, struct hf__req *, int result);

#endif
