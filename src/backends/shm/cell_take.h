/*
 * Takes a free cell of the file. Needs no lock; may lock the tables for a
 * moment, to take back what the dead left.
 */
#ifndef HF_SHM_CELL_TAKE_H
#define HF_SHM_CELL_TAKE_H

#include "shm.h"

/* One of ours, in nobody's queue; or a code. */
int hf__shm_cell_take(struct shm *);

#endif
