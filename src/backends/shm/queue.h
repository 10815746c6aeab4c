/*
 * Reads the queue of a name of any kind, without a lock. The result may be
 * trusted only if the word of the name has not changed in the meantime, or if a
 * wrong answer does no harm.
 */
#ifndef HF_SHM_QUEUE_H
#define HF_SHM_QUEUE_H

#include "shm.h"

#define SHM_NO_CELL 0xffffu

/* A waiter: its ticket, which orders the queue, and its cell. */
struct shm_queue_place {
    uint64_t ticket;
    unsigned cell;
};

struct shm_queue_scan {
    unsigned len;    /* cells in the queue; may include those of dead clients */
    unsigned first;  /* the cell with the lowest ticket, or SHM_NO_CELL */
    unsigned before; /* the cell with the highest ticket below `mine`, or
                        SHM_NO_CELL */
    unsigned behind; /* the cell with the lowest ticket above `mine`, or
                        SHM_NO_CELL */
    uint32_t first_owner, before_owner;
    uint64_t first_ticket, before_ticket, behind_ticket;
};

/* Returns the lowest number, `from` or higher, of a cell that the entry uses;
 * or SHM_NO_CELL if there is none. */
unsigned hf__shm_queue_next(struct shm *, unsigned index, unsigned from);
/* Reads the queue, without the cells of the client `except`. `mine` is the
 * ticket by which `before` and `behind` are found, or 0. `first`, `before` and
 * `behind` are cells of live clients. */
void hf__shm_queue_scan(struct shm *, unsigned index, uint32_t except,
                        uint64_t mine, struct shm_queue_scan *);
/* Changes the word and sets `flags` in it. Decisions that other clients based
 * on the old word then fail. Must not be used for a latch. */
void hf__shm_queue_stir(struct shm *, struct shm_entry *, uint64_t flags);

#endif
