/*
 * Notifies holders that listen (their programs receive events): their lock is
 * wanted, or their hold was broken. To *mark* a hold is to note that in the
 * file (notify.c); a client that does so has the tables locked. The list of
 * listeners belongs to the client, whose mutex is locked when a lock is added
 * or removed, and when the helper thread checks them.
 */
#ifndef HF_SHM_NOTIFY_H
#define HF_SHM_NOTIFY_H

#include "lock_state.h"
#include "shm.h"

/* Allocated behind each lock of a client that listens. */
struct shm_listener {
    struct shm_listener *next, *prev;
    struct hf__remote *remote;
};

/* HF__ASK: marks all holds of the name. Tables locked. Returns DONE, or
 * ENOTOWNER if no client holds it. */
int hf__shm_notify_ask(struct shm *, const struct hf__query *);
/* A mutex of `owner` was broken: makes its helper thread check its mutexes, if
 * it listens. Tables locked. */
void hf__shm_notify_broken(struct shm *, uint32_t owner);
/* Marks the cell of `owner` and makes its helper thread check it, if it
 * listens. `what` is SHM_ASKED or SHM_BROKEN. Tables locked. */
void hf__shm_notify_cell(struct shm *, unsigned cell, uint32_t owner,
                         uint8_t what);
/* The size of a lock of that kind, with its listener if the client listens. */
size_t hf__shm_notify_lock_size(const struct shm *, uint8_t kind);
/* Add the lock to the list of listeners, or remove it. No effect if this client
 * does not listen. */
void hf__shm_notify_add(struct shm *, struct shm_lock *, struct hf__remote *);
void hf__shm_notify_remove(struct shm *, struct shm_lock *);
/* Called by the helper thread: reports to the core the marks that were set
 * since its last call. */
void hf__shm_notify_poll(struct shm *);

#endif
