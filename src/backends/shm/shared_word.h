/*
 * The word of a read-write lock or a semaphore: permits, and passing them on.
 * Any client may call these for any such name: each change is a swap that fails
 * if the word is not the one that was read.
 */
#ifndef HF_SHM_SHARED_WORD_H
#define HF_SHM_SHARED_WORD_H

#include "shm.h"

/* The permits that there are. */
static inline unsigned shm_size(struct shm_entry *e)
{
    return shm_kind(e) == HF_RWLOCK ? SHM_PERMITS_MAX : e->permits;
}

static inline hf__time shm_cell_lease_end(struct shm_cell *c)
{
    uint64_t until = atomic_load(&c->lease) >> 24;

    return until ? (hf__time)until * HF__MS : HF__NEVER;
}

/* One change, of a word as it was read: the cell has that many permits then.
 * False: the word has changed. */
bool hf__shm_shared_change(struct shm *, struct shm_entry *, uint64_t *word,
                           unsigned cell, unsigned permits);
/* The same, to none, of a cell that somebody else has: if that waits, it does
 * not any more. */
bool hf__shm_shared_take_back(struct shm *, struct shm_entry *, uint64_t *word,
                              unsigned cell);
/* Grants to those who are first in the queue, as many as fit, and rings them;
 * but not `self`. False: nothing was to be done. */
bool hf__shm_shared_pass(struct shm *, unsigned index, unsigned self);
/* In case that who granted to the cell is not there any more to go on. */
void hf__shm_shared_pass_on(struct shm *, unsigned index, unsigned cell,
                            uint64_t ticket);
/* All that the cell has, and its place; the word does not name it then. False:
 * given up, see retry.h. */
bool hf__shm_shared_clear(struct shm *, unsigned index, unsigned cell);
/* Has the cell the lock, by that word, and is its owner not gone? */
bool hf__shm_shared_is_held_by(struct shm *, uint64_t word, unsigned cell);

#endif
