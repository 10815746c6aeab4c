/*
 * The table of names: finds, makes and takes back entries.
 */
#ifndef HF_SHM_NAME_TABLE_H
#define HF_SHM_NAME_TABLE_H

#include "shm.h"

/* The kind as it is stored in the entry. */
static inline uint16_t shm_entry_kind(const struct hf__remote *remote)
{
    /* the waiters of a latch have no order: stored as fair */
    bool fair = remote->fair || remote->kind == HF_LATCH;

    return (uint16_t)(remote->kind | (fair ? 256 : 0));
}

/* Returns the index of the entry, or -1. With `attached` it searches only the
 * names on which this client has locks, which no client changes; without, the
 * caller has the tables locked. */
int hf__shm_name_find(struct shm *, const char *name, size_t len,
                      bool attached);
/* Makes an entry for the name at `index`, which is free. */
void hf__shm_name_make_locked(struct shm *, unsigned index,
                              const struct hf__remote *);
/* Frees the entry and returns true if no client has a handle on it, holds it or
 * waits for it. */
bool hf__shm_name_reclaim_locked(struct shm *, unsigned index);
/* Takes back the unused names that clients could not take back because the
 * tables were locked (counted in `unswept`). */
void hf__shm_names_sweep_locked(struct shm *);

#endif
