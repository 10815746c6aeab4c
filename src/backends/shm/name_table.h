/*
 * The table of names: finds entries, creates them and takes them back.
 */
#ifndef HF_SHM_NAME_TABLE_H
#define HF_SHM_NAME_TABLE_H

#include "shm.h"

/* Returns the kind as it is stored in the entry. */
static inline uint16_t shm_entry_kind(const struct hf__remote *remote)
{
    /* the waiters of a latch have no order: `fair` is ignored, and stored as
     * true */
    bool fair = remote->fair || remote->kind == HF_LATCH;

    return (uint16_t)(remote->kind | (fair ? 256 : 0));
}

/* Returns the index of the entry of that name, or -1. If `attached` is true,
 * searches only the names on which this client has locks of a kind other than
 * the mutex; no other client gives these entries another name. Otherwise the
 * caller must hold the table lock. */
int hf__shm_name_find(struct shm *, const char *name, size_t len,
                      bool attached);
/* Creates the entry `index`, which must be free, for the name of the
 * hf__remote. */
void hf__shm_name_make_locked(struct shm *, unsigned index,
                              const struct hf__remote *);
/* If no client has a handle on the entry, holds it or waits for it, and it is
 * not a latch that is set, frees it and returns true. */
bool hf__shm_name_reclaim_locked(struct shm *, unsigned index);
/* Takes back the unused names (counted in `unswept`) that clients could not
 * take back because another thread held the table lock. */
void hf__shm_names_sweep_locked(struct shm *);

#endif
