/*
 * Notifies holders that listen (whose programs receive events) that their lock
 * is wanted, or that their hold was broken. To *mark* a hold is to note that in
 * the file (notify.c); a client that does so holds the table lock. The list of
 * listeners belongs to the client, whose mutex is locked when a lock is added
 * to the list or removed from it, and when the helper thread goes through the
 * list.
 */
#ifndef HF_SHM_NOTIFY_H
#define HF_SHM_NOTIFY_H

#include "lock_state.h"
#include "shm.h"

/* Allocated after each lock, in the same block, if the client listens. */
struct shm_listener {
    struct shm_listener *next, *prev;
    struct hf__remote *remote;
};

/* Marks all holds of the name, for HF__ASK. The caller holds the table lock.
 * Returns HF__DONE, or ENOTOWNER if no client holds the name. */
int hf__shm_notify_ask(struct shm *, const struct hf__query *);
/* Called when a mutex of the client `owner` was broken: if that client listens,
 * makes its helper thread check its mutexes. The caller holds the table
 * lock. */
void hf__shm_notify_broken(struct shm *, uint32_t owner);
/* If the client `owner` listens, marks its cell and makes its helper thread
 * check the cell. `what` is SHM_ASKED or SHM_BROKEN. The caller holds the table
 * lock. */
void hf__shm_notify_cell(struct shm *, unsigned cell, uint32_t owner,
                         uint8_t what);
/* Returns the size of a lock of that kind, including its listener if the client
 * listens. */
size_t hf__shm_notify_lock_size(const struct shm *, uint8_t kind);
/* These add the lock to the list of listeners, or remove it. They have no
 * effect if this client does not listen. */
void hf__shm_notify_add(struct shm *, struct shm_lock *, struct hf__remote *);
void hf__shm_notify_remove(struct shm *, struct shm_lock *);
/* Called by the helper thread: reports to the core the marks that were set
 * since its last call. */
void hf__shm_notify_poll(struct shm *);

#endif
