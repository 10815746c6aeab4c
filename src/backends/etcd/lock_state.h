/*
 * What a client knows of one lock at the server: its entry, the request that is
 * under way for it, and the core's request that waits for the outcome. It
 * belongs to the core's hf__remote (remote->impl) from attach to detach. lock.c
 * decides what is done with it.
 */
#ifndef HF_ETCD_LOCK_STATE_H
#define HF_ETCD_LOCK_STATE_H

#include "backends/backend.h"

struct etcd;
struct et_request;
struct et_watch;

#define ET_WATCHES 2 /* of a lock */
#define ET_LOOKS 4   /* the last of them is repeated */

/*
 * Where the lock is, between the requests of the core:
 *
 *   state    requests under way for it       fields that mean something
 *   -----    -------------------------       --------------------------
 *   RESTING  none; of an attempt: ENTER,     rev, maybe, doubt; verdict while
 *            READ_QUEUE, READ_MARK, COUNT;   an attempt is given up
 *            of what is let go or given up:
 *            CONFIRM, DROP
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
    ET_RUNG,   /* the bell was rung: the core will send another attempt */
    ET_HELD,   /* it was granted */
};

/*
 * What the next step of a pending attempt waits for:
 *
 *   awaits  attempt  under way                           rev
 *   ------  -------  ---------                           ---
 *   ANSWER  any      any                                 any
 *   DROP    pending  nothing of this lock; the DROP of   0
 *                    another lock of the same name
 *   PROOF   pending  nothing of this lock; a keep-alive  not 0: nobody is
 *                    of the client                       before it
 *
 * With DROP and PROOF the state is RESTING, QUEUED or RUNG. DROP may be left
 * over when there is no attempt any more, and means nothing then.
 */
enum et_awaits { ET_AWAITS_ANSWER, ET_AWAITS_DROP, ET_AWAITS_PROOF };

/* The mark of a writer that goes on reading. */
enum et_mark {
    ET_UNMARKED,
    ET_MARK_OWED, /* it may be there; the next renewal writes it */
    ET_MARKED,    /* it is there */
};

/*
 * What the client knows of the entry, in any state (x: it is set; -: it is not;
 * any: either):
 *
 *   rev  maybe  doubt  is_late
 *    -     -      -       -     there is none
 *    -     x     any      -     there may be one
 *    -     -      x       -     there is none; an ENTER may make one
 *    x     -     any      -     there is one
 *    x     -     any      x     there is one, but not the one that was held: an
 *                               ENTER that came late has made it, and it is
 *                               dropped
 */
struct et_lock {
    struct et_lock *next, *prev; /* etcd.locks */
    struct etcd *e;
    struct hf__remote *remote;
    enum et_lock_state state;
    enum et_awaits awaits;
    uint64_t hold_id; /* of the entry */
    int64_t rev;      /* its create revision; 0: not known */
    int64_t since_ms; /* when it was made or granted, by the wall clock */
    uint8_t form;     /* enum et_form */
    uint8_t other;    /* of its verdict EMISMATCH: what was found, */
    uint32_t size;    /* and how large that semaphore is */
    int16_t verdict; /* it is being dropped, and then the attempt comes to this;
                        0: it is not */
    bool maybe, doubt, is_late; /* as above */
    bool is_fixed;              /* its lease is, which the core ends */
    enum et_mark mark;
    bool is_fresh;  /* its ENTER has found the entries before it */
    uint8_t looks;  /* since a watch was made */
    int64_t round;  /* of a latch: its create revision; 0 */
    int64_t wanted; /* somebody asked for the entry of that create revision */
    struct hf__req *attempt;      /* the one that is pending; NULL */
    struct hf__req *let_go;       /* a release or an abandon; NULL */
    struct et_request *under_way; /* about this entry; NULL */
    unsigned writes; /* of its holder that are under way: a DROP waits */
    struct et_watch *watch[ET_WATCHES]; /* the first is waited for: QUEUED */
    struct et_watch *own; /* on its own entry, if the program hears of events;
                             NULL */
    int64_t view;         /* the revision at which that was there */
    size_t key_len;       /* with ROOT and what an entry has behind NAME/ */
    size_t dir_len;       /* up to there */
    char key[];
};

/* Is there an entry, or may there be one? */
static inline bool hf__et_may_be_there(const struct et_lock *l)
{
    return l->rev || l->maybe || l->doubt;
}

/* Was the core answered QUEUED? */
static inline bool hf__et_is_queued(const struct et_lock *l)
{
    return l->state == ET_QUEUED || l->state == ET_RUNG;
}

/* Does it look only because it has heard nothing for a while? */
static inline bool hf__et_is_safety_look(const struct et_lock *l)
{
    return l->state == ET_QUEUED && l->looks == ET_LOOKS;
}

/* It waits no more, or it is not held any more; else nothing changes. */
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

/* It awaits no proof any more; else nothing changes. */
static inline void hf__et_unproved(struct et_lock *l)
{
    if (l->awaits == ET_AWAITS_PROOF)
        l->awaits = ET_AWAITS_ANSWER;
}

/* The one that has that hold, or NULL. */
struct et_lock *hf__et_lock_of(const struct etcd *, uint64_t hold_id);
/* The entry is gone: it was deleted. */
void hf__et_lock_taken(struct et_lock *);
/* The client's lease has ended, with the entry. The core hears of a loss. */
void hf__et_lock_over(struct et_lock *, const char *why);
/* Reports the result of a core's request. The lock, if it is of one, forgets
 * it. */
void hf__et_finish(struct etcd *, struct hf__req *, int result);

#endif
