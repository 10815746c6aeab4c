/*
 * A lock's wait. struct shm_wait is allocated at the first wait of a lock and
 * freed with the lock. The caller has the mutex of the line (struct hf__remote)
 * locked. The helper thread reads the atomic members, and those that
 * async_mutex guards.
 */
#ifndef HF_SHM_WAIT_H
#define HF_SHM_WAIT_H

#include "lock_state.h"
#include "shm.h"

/* `watch` tells what to sleep on, as of the last check. */
struct shm_wait {
    struct shm_watch {
        shm_u32 bell; /* the value of its cell's bell before the check */
        shm_u32 slot[SHM_WATCHED]; /* slots of the clients to watch, or 0 */
        shm_u32 word[SHM_WATCHED]; /* the values of `alive` of these slots */
        _Atomic hf__time until;    /* when to check again at the latest */
    } watch;
    shm_u16 cell; /* its cell while the lock is QUEUED, else SHM_NO_CELL */
    bool announced;
    uint8_t dying;      /* how often a watched client was dead but not gone, see
                           watch.c */
    hf__time verify_at; /* when to check the watched processes next */
    /* Both flags change under async_mutex. They are separate because in_async
     * is also read with only the mutex of the line locked. */
    bool in_async, rung;
    struct hf__remote *remote;
    struct shm_wait *next, *prev; /* neighbours in the list shm.async */
};

/* Allocates what the lock needs to wait. Returns 0; ENOMEM; or EBACKEND if the
 * file was removed. */
int hf__shm_wait_make(struct shm *, struct shm_lock *, struct hf__remote *);
/* Begins to wait with `cell`, which has no place in the queue yet. */
void hf__shm_wait_begin(struct shm *, struct shm_lock *, unsigned cell,
                        const struct hf__req *);
/* Ends the wait. Returns the cell of the wait, which still has its place in the
 * queue. */
unsigned hf__shm_wait_end(struct shm *, struct shm_lock *);
/* Called after the wait has taken its place in the queue. The first call rings
 * the waiter after it (cell `behind`), if there is one, so that this waiter
 * watches us. */
void hf__shm_wait_announce(struct shm *, struct shm_wait *, unsigned behind);
/* Ends an attempt that waits: returns HF__QUEUED, and stores in the request
 * when to try again. The waiting thread then sleeps in hf__shm_park; for an
 * asynchronous wait the helper thread sleeps. */
int hf__shm_wait_sleep(struct shm *, struct shm_wait *, struct hf__req *);

#endif
