/*
 * Takes a free cell of the file. The caller need not hold a lock. If no cell is
 * free, the function briefly takes the table lock to take back the cells of
 * dead clients.
 */
#ifndef HF_SHM_CELL_TAKE_H
#define HF_SHM_CELL_TAKE_H

#include "shm.h"

/* Returns the number of a cell that now belongs to this client and is in no
 * queue, or a code. */
int hf__shm_cell_take(struct shm *);

#endif
