/*
 * Reads the queue of a name: of any kind, without a lock. What is read is only
 * believed if the word of the name has not changed in between, or if a wrong
 * answer does no harm.
 */
#ifndef HF_SHM_QUEUE_H
#define HF_SHM_QUEUE_H

#include "shm.h"

#define SHM_NO_CELL 0xffffu

struct shm_queue_scan {
    unsigned len;    /* cells of this lock, the dead included */
    unsigned first;  /* the lowest ticket; SHM_NO_CELL */
    unsigned before; /* the highest ticket below mine */
    unsigned behind; /* the lowest ticket above mine */
    uint32_t first_owner, before_owner;
    uint64_t first_ticket, before_ticket, behind_ticket;
};

/* The next cell of an entry from that number on, if it is somebody's;
 * SHM_NO_CELL. */
unsigned hf__shm_queue_next(struct shm *, unsigned index, unsigned from);
/* The queue as it is, without the cells of the client `except`. */
void hf__shm_queue_scan(struct shm *, unsigned index, uint32_t except,
                        uint64_t mine, struct shm_queue_scan *);
/* Makes decisions fail that were made on what has changed, by a change of the
 * word that also sets these flags. Not of a latch. */
void hf__shm_queue_stir(struct shm *, struct shm_entry *, uint64_t flags);

#endif
