/*
 * The table lock (for slots and names), which is a robust word in the file; and
 * the other robust word, `alive` of each client. Functions whose names end in
 * _locked expect the caller to hold the table lock.
 *
 * Attach and query take the table lock with the client's mutex locked, which
 * the helper thread needs. They therefore wait for at most a second. An attach
 * that does not get the lock in that time returns HF__LATER, and the core
 * repeats it.
 */
#ifndef HF_SHM_TABLE_LOCK_H
#define HF_SHM_TABLE_LOCK_H

#include "shm.h"

/* how long to wait for one thread, which may be stopped */
#define SHM_TABLES_NS (500 * HF__MS)
/* how long to wait in total, if many threads want the lock */
#define SHM_CROWD_NS (1000 * HF__MS)

/* The thread that holds the table lock, or is about to take it. */
struct shm_thread {
    uint32_t number;
    struct robust_list_head *list; /* its robust list, or NULL if it has none */
};

/* Returns 0, or EBACKEND if one thread holds the lock for longer than
 * `patience` (the message names its process), or if the lock cannot be taken
 * within `limit`. */
int hf__shm_tables_lock(struct shm *, struct shm_thread *, hf__time patience,
                        hf__time limit);
/* Like hf__shm_tables_lock, but does not wait. Returns false if another thread
 * holds the lock. */
bool hf__shm_tables_trylock(struct shm *, struct shm_thread *);
void hf__shm_tables_unlock(struct shm *, struct shm_thread *);

/* Called by the helper thread, which holds the table lock. Replaces the
 * thread's robust list by one that contains *alive and the table lock, and puts
 * the thread's id into *alive. When the thread ends, the kernel marks *alive.
 */
void hf__shm_robust_begin(struct shm *, struct shm_thread *, shm_u32 *alive);
/* Removes the id of the thread from *alive. */
void hf__shm_robust_clear(struct shm *, shm_u32 *alive);
/* Called by the helper thread, which must not hold the table lock. Restores the
 * robust list that hf__shm_robust_begin() replaced, so that the kernel no
 * longer marks *alive. */
void hf__shm_robust_end(struct shm *);

#endif
