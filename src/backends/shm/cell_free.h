/*
 * Gives cells back. The caller either owns the cell, or holds the table lock
 * and buries the dead client that owned the cell.
 */
#ifndef HF_SHM_CELL_FREE_H
#define HF_SHM_CELL_FREE_H

#include "shm.h"

/* Frees a cell that is in no queue: any client may take it from now on. */
void hf__shm_cell_free(struct shm_cell *);
/* Frees the cell, after giving back its permits and its place in a queue. A
 * cell whose permits cannot be given back is kept. */
void hf__shm_cell_drop(struct shm *, unsigned cell);

#endif
