/*
 * Notifies holders that listen: their lock is wanted, or their hold was broken.
 * Those who mark a hold have the tables locked. The list of listeners is the
 * client's: its mutex is locked when a lock is added or removed, and when the
 * helper thread checks them.
 */
#ifndef HF_SHM_NOTIFY_H
#define HF_SHM_NOTIFY_H

#include "lock_state.h"
#include "shm.h"

/* Behind each lock of a client that listens. */
struct shm_listener {
    struct shm_listener *next, *prev;
    struct hf__remote *remote;
};

/* HF__ASK: marks all holds of the name. Tables locked. */
int hf__shm_notify_ask(struct shm *, const struct hf__query *);
/* The holder, if it listens, shall check its mutexes. Tables locked. */
void hf__shm_notify_broken(struct shm *, uint32_t owner);
/* The holder, if it listens, shall check the cell, for `what`: SHM_ASKED,
 * SHM_BROKEN. Tables locked. */
void hf__shm_notify_cell(struct shm *, unsigned cell, uint32_t owner,
                         uint8_t what);
/* Of a lock on a name of that kind, with its listener if there is one. */
size_t hf__shm_notify_lock_size(const struct shm *, uint8_t kind);
void hf__shm_notify_add(struct shm *, struct shm_lock *, struct hf__remote *);
void hf__shm_notify_remove(struct shm *, struct shm_lock *);
/* Called by the helper thread: reports to the core what the client's holds have
 * been marked with since the last time. */
void hf__shm_notify_poll(struct shm *);

#endif
