/*
 * Takes a free cell of the file. Needs no lock; may lock the tables for a
 * moment, to take back cells of dead clients.
 */
#ifndef HF_SHM_CELL_TAKE_H
#define HF_SHM_CELL_TAKE_H

#include "shm.h"

/* Returns the number of a cell, which is ours and in no queue; or a code. */
int hf__shm_cell_take(struct shm *);

#endif
