/*
 * Takes free cells. The search needs no lock; the table lock is taken only if
 * no cell is free, to take back the cells of dead clients. The number of a
 * client's slot decides where its search begins, so that clients do not all try
 * the same cell.
 */
#include "cell_take.h"

#include "dead_clients.h"
#include "retry.h"
#include "table_lock.h"

/* Raises cells_high, up to which clients search for cells that are in use. The
 * caller does this before it takes the cell: in the opposite order, a client
 * that is killed between the two steps would leave a cell that no search
 * finds. */
static void take_raise_high(struct shm *s, uint32_t high)
{
    shm_u32 *at = &s->file->header.cells_high;
    uint32_t old = atomic_load(at);
    struct shm_retry retry = {0};

    while (old < high && !atomic_compare_exchange_weak(at, &old, high) &&
           hf__shm_retry(s, &retry))
        ;
}

int hf__shm_cell_take(struct shm *s)
{
    struct shm_file *f = s->file;
    unsigned start = (s->me & SHM_SLOT_MASK) - 1;
    struct shm_thread thread;

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < SHM_CELLS; i++) {
            unsigned n = (start + i) % SHM_CELLS;
            uint32_t free_cell = 0;

            if (atomic_load_explicit(&f->cell[n].owner, memory_order_relaxed))
                continue;
            take_raise_high(s, n + 1);
            SHM_POINT();
            if (atomic_compare_exchange_strong(&f->cell[n].owner, &free_cell,
                                               s->me))
                return (int)n;
        }
        if (round ||
            hf__shm_tables_lock(s, &thread, SHM_TABLES_NS, SHM_TABLES_NS))
            break;
        hf__shm_bury_all_locked(s);
        hf__shm_tables_unlock(s, &thread);
    }
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: %u waits and shared holds are there already, the "
                        "limit",
                        s->path, SHM_CELLS);
}
