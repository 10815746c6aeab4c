/*
 * Reads the queue of a name of any kind, without a lock. The result is trusted
 * only if the word of the name has not changed meanwhile, or if a wrong answer
 * does no harm.
 */
#ifndef HF_SHM_QUEUE_H
#define HF_SHM_QUEUE_H

#include "shm.h"

#define SHM_NO_CELL 0xffffu

struct shm_queue_scan {
    unsigned len;    /* cells in the queue, including those of dead clients */
    unsigned first;  /* the lowest ticket; or SHM_NO_CELL */
    unsigned before; /* the highest ticket below mine */
    unsigned behind; /* the lowest ticket above mine */
    uint32_t first_owner, before_owner;
    uint64_t first_ticket, before_ticket, behind_ticket;
};

/* Returns the next used cell of the entry, from that number on; or
 * SHM_NO_CELL. */
unsigned hf__shm_queue_next(struct shm *, unsigned index, unsigned from);
/* Reads the queue, without the cells of the client `except`. `mine` is the
 * ticket by which `before` and `behind` are found, or 0. The cells that it
 * finds belong to live clients. */
void hf__shm_queue_scan(struct shm *, unsigned index, uint32_t except,
                        uint64_t mine, struct shm_queue_scan *);
/* Changes the word, and sets these flags, so that decisions that other clients
 * made before fail. Not for a latch. */
void hf__shm_queue_stir(struct shm *, struct shm_entry *, uint64_t flags);

#endif
