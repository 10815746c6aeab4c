/*
 * Gives cells back. The caller owns the cell, or buries its owner with the
 * tables locked.
 */
#ifndef HF_SHM_CELL_FREE_H
#define HF_SHM_CELL_FREE_H

#include "shm.h"

/* It is in nobody's queue any more: anybody's. */
void hf__shm_cell_free(struct shm_cell *);
/* Gives it back, with whatever it has. */
void hf__shm_cell_drop(struct shm *, unsigned cell);

#endif
