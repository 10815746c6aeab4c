/*
 * The word of a read-write lock or a semaphore: permits, and how they are
 * passed on. Any client may call these functions for any such name: each change
 * is a swap that fails if the word has changed since it was read.
 */
#ifndef HF_SHM_SHARED_WORD_H
#define HF_SHM_SHARED_WORD_H

#include "shm.h"

/* Returns the number of all permits of the name. */
static inline unsigned shm_size(struct shm_entry *e)
{
    return shm_kind(e) == HF_RWLOCK ? SHM_PERMITS_MAX : e->permits;
}

/* Returns when the lease of the cell ends, or HF__NEVER if it has none. */
static inline hf__time shm_cell_lease_end(struct shm_cell *c)
{
    uint64_t until = atomic_load(&c->lease) >> 24;

    return until ? (hf__time)until * HF__MS : HF__NEVER;
}

/* Gives the cell `permits` permits, by a swap of the word from *word, and
 * stores the new word in *word. Returns false if the word has changed. */
bool hf__shm_shared_change(struct shm *, struct shm_entry *, uint64_t *word,
                           unsigned cell, unsigned permits);
/* Takes all permits from the cell, and clears its ticket if it has one. The
 * cell may belong to another client. Returns false if the word has changed. */
bool hf__shm_shared_take_back(struct shm *, struct shm_entry *, uint64_t *word,
                              unsigned cell);
/* Grants to the first waiters while their permits fit, and rings their cells,
 * except the cell `self`. Returns false if there was nothing to do. */
bool hf__shm_shared_pass(struct shm *, unsigned index, unsigned self);
/* Called by the owner of a cell that was granted permits. If the cell was not
 * rung for them, the client that granted them may have died. In that case this
 * function completes the work of that client: grants to further waiters, and
 * rings those that have a grant and were not rung. */
void hf__shm_shared_pass_on(struct shm *, unsigned index, unsigned cell,
                            uint64_t ticket);
/* Removes the cell from the queue and gives back its permits. Afterwards the
 * word does not name the cell. Returns false if it gave up, see retry.h. */
bool hf__shm_shared_clear(struct shm *, unsigned index, unsigned cell);
/* Returns whether the cell has permits according to `word` and its owner is not
 * gone. */
bool hf__shm_shared_is_held_by(struct shm *, uint64_t word, unsigned cell);

#endif
