/*
 * The table of names: finds, makes and takes back entries.
 */
#ifndef HF_SHM_NAME_TABLE_H
#define HF_SHM_NAME_TABLE_H

#include "shm.h"

/* The kind as it is stored in the entry. */
static inline uint16_t shm_entry_kind(const struct hf__remote *remote)
{
    bool fair = remote->fair || remote->kind == HF_LATCH; /* has no order */

    return (uint16_t)(remote->kind | (fair ? 256 : 0));
}

/* Returns the index of the entry, or -1. The caller has the tables locked; or
 * `attached` is true, and only names on which this client has locks are
 * searched, which no client changes. */
int hf__shm_name_find(struct shm *, const char *name, size_t len,
                      bool attached);
/* Fills a free entry. */
void hf__shm_name_make_locked(struct shm *, unsigned index,
                              const struct hf__remote *);
/* Frees the entry if no client has a handle on it, holds it or waits for it. */
bool hf__shm_name_reclaim_locked(struct shm *, unsigned index);
/* Takes back unused names that were left because the tables were locked
 * (`unswept`). */
void hf__shm_names_sweep_locked(struct shm *);

#endif
