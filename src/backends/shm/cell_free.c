/* Frees cells. A cell may be freed when it is in no queue, has no permits, and
 * no word names it. */
#include "cell_free.h"

#include "queue.h"
#include "shared_word.h"
#include "watch.h"

/* Clears the cell's name first: a client that saw this cell wait in a queue
 * must not mistake a wait of the cell's next owner for the wait that it saw. */
void hf__shm_cell_free(struct shm_cell *c)
{
    atomic_store_explicit(&c->name, SHM_NO_NAME, memory_order_relaxed);
    SHM_POINT();
    atomic_store(&c->owner, 0);
}

/* Removes the cell from the entry's list. Returns false if the cell still has
 * permits that could not be given back. */
static bool free_leave_entry(struct shm *s, unsigned index, unsigned cell)
{
    struct shm_entry *e = &s->file->entry[index];

    if (shm_is_shared(e) && !hf__shm_shared_clear(s, index, cell))
        return false;
    SHM_POINT();
    atomic_fetch_and(&e->cells[cell / 64], ~(1ULL << cell % 64));
    SHM_POINT();
    if (shm_kind(e) != HF_LATCH)
        hf__shm_queue_stir(s, e, 0);
    return true;
}

void hf__shm_cell_drop(struct shm *s, unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    unsigned index = atomic_load(&c->name) % SHM_NAMES;

    SHM_POINT();
    /* A cell whose permits could not be given back stays in its list. After the
     * client that owns the cell has died, another client gives the permits
     * back. */
    if ((atomic_load(&s->file->entry[index].cells[cell / 64]) >> cell % 64 &
         1) &&
        !free_leave_entry(s, index, cell))
        return;
    hf__shm_unwatch(s, c, 0);
    SHM_POINT();
    hf__shm_cell_free(c);
}
