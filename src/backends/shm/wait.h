/*
 * A lock's wait. struct shm_wait is made at the first wait of a lock and freed
 * with the lock. The caller has the mutex of the line locked; the helper thread
 * reads the members that are atomic, and those of async_mutex.
 */
#ifndef HF_SHM_WAIT_H
#define HF_SHM_WAIT_H

#include "lock_state.h"
#include "shm.h"

/* `watch` is what to sleep on, as of the last check. */
struct shm_wait {
    struct shm_watch {
        shm_u32 bell; /* value of its cell's bell before the check */
        shm_u32 slot[SHM_WATCHED]; /* of clients whose death concerns it; 0 */
        shm_u32 word[SHM_WATCHED]; /* values of their liveness words */
        _Atomic hf__time until;    /* check again then at the latest */
    } watch;
    shm_u16 cell; /* while QUEUED, else SHM_NO_CELL */
    bool announced;
    uint8_t dying;      /* checks of a process that is not quite gone */
    hf__time verify_at; /* not before: are those whom it watches alive? */
    /* Changed with async_mutex locked. Two flags and not one state, because
     * in_async is read under the mutex of the line alone. */
    bool in_async, rung;
    struct hf__remote *remote;
    struct shm_wait *next, *prev; /* async */
};

/* What the lock needs to wait; ENOMEM, or EBACKEND: the file is gone. */
int hf__shm_wait_make(struct shm *, struct shm_lock *, struct hf__remote *);
/* The lock waits, with that cell, which has no place in the queue yet. */
void hf__shm_wait_begin(struct shm *, struct shm_lock *, unsigned cell,
                        const struct hf__req *);
/* It does not wait any more; its cell, which is returned, has a place still. */
unsigned hf__shm_wait_end(struct shm *, struct shm_lock *);
/* It has its place in the queue: who is behind it, if anybody, is to know. */
void hf__shm_wait_announce(struct shm *, struct shm_wait *, unsigned behind);
/* The end of an attempt that waits: returns HF__QUEUED, and in the request when
 * to try again. The thread sleeps in hf__shm_park; or, of an asynchronous wait,
 * the helper thread does. */
int hf__shm_wait_sleep(struct shm *, struct shm_wait *, struct hf__req *);

#endif
