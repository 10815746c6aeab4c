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

/* The one that has that hold, or NULL. */
struct et_lock *hf__et_lock_of(const struct etcd *, uint64_t hold_id);
/* The entry is gone: it was deleted. Its own leases are revoked. */
void hf__et_lock_taken(struct et_lock *);
/* The client's lease has ended, with the entry. The core hears of a loss. */
void hf__et_lock_over(struct et_lock *, const char *why);
/* Reports the result of a core's request. The lock, if it is of one, forgets
 * it. */
void hf__et_finish(struct etcd *, struct hf__req *, int result);

#endif
