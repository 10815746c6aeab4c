/*
 * The lock of the tables (slots and names), which is a robust word in the file;
 * and the other robust word, `alive` of each client. Functions whose names end
 * in _locked expect this lock to be held.
 *
 * Attach and query lock it with the client's mutex locked, which the helper
 * thread needs. So they wait for a second at most. An attach that does not get
 * the lock in that time returns HF__LATER, and the core repeats it.
 */
#ifndef HF_SHM_TABLE_LOCK_H
#define HF_SHM_TABLE_LOCK_H

#include "shm.h"

/* how long to wait for one thread, which may be stopped */
#define SHM_TABLES_NS (500 * HF__MS)
/* how long to wait in all, if many threads want the tables */
#define SHM_CROWD_NS (1000 * HF__MS)

/* The thread that has locked the tables, or is about to. */
struct shm_thread {
    uint32_t number;
    struct robust_list_head *list; /* its robust list; NULL: it has none */
};

/* Returns 0, or EBACKEND if one thread keeps the tables locked for longer than
 * `patience` (the text names its process), or if they cannot be locked within
 * `limit`. */
int hf__shm_tables_lock(struct shm *, struct shm_thread *, hf__time patience,
                        hf__time limit);
/* The same, but does not wait. False: another thread has them locked. */
bool hf__shm_tables_trylock(struct shm *, struct shm_thread *);
void hf__shm_tables_unlock(struct shm *, struct shm_thread *);

/* Called by the helper thread, with the tables locked: puts its id into *alive,
 * which the kernel marks when the thread ends. */
void hf__shm_robust_begin(struct shm *, struct shm_thread *, shm_u32 *alive);
/* Takes the id out of *alive again. */
void hf__shm_robust_clear(struct shm *, shm_u32 *alive);
/* Gives the thread its old list back: the kernel no longer marks *alive. The
 * tables must not be locked. */
void hf__shm_robust_end(struct shm *);

#endif
