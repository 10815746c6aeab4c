/*
 * The table of names: an entry is found, made and taken back here.
 */
#ifndef HF_SHM_NAME_TABLE_H
#define HF_SHM_NAME_TABLE_H

#include "shm.h"

/* The kind as it is in the entry. */
static inline uint16_t shm_entry_kind(const struct hf__remote *remote)
{
    bool fair = remote->fair || remote->kind == HF_LATCH; /* has no order */

    return (uint16_t)(remote->kind | (fair ? 256 : 0));
}

/* -1: there is none. Tables locked; or attached: of those that we have locks
 * on, which nobody changes. */
int hf__shm_name_find(struct shm *, const char *name, size_t len,
                      bool attached);
/* Fills a free entry. */
void hf__shm_name_make_locked(struct shm *, unsigned index,
                              const struct hf__remote *);
/* Frees the entry if nobody has it, holds it or waits for it. */
bool hf__shm_name_reclaim_locked(struct shm *, unsigned index);
/* Names that nobody uses have stayed where the tables were not to be had
 * (`unswept`): takes them back. */
void hf__shm_names_sweep_locked(struct shm *);

#endif
