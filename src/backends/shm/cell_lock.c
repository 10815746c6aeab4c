/* Takes and gives back the cell of a lock, and enters and leaves the queue with
 * it. */
#include "cell_lock.h"

#include "cell_free.h"
#include "cell_take.h"
#include "file.h"
#include "lock_state.h"
#include "queue.h"
#include "wait.h"
#include "watch.h"

int hf__shm_cell_lock_take_cell(struct shm *s, struct shm_cell_lock *l,
                                const struct hf__remote *remote)
{
    struct shm_cell *c;
    int n;

    if (atomic_load(&l->cell) != SHM_NO_CELL)
        return 0;
    if (!hf__shm_file_still_there(s))
        return HF_EBACKEND;
    n = hf__shm_cell_take(s);
    if (n < 0)
        return n;
    SHM_POINT();
    c = &s->file->cell[n];
    atomic_store(&c->name, l->lock.index);
    atomic_store(&c->ticket, 0);
    atomic_store(&c->lease, 0);
    shm_label_put(c->label, remote->label);
    SHM_POINT();
    atomic_fetch_or(&l->lock.entry->cells[n / 64], 1ULL << n % 64);
    SHM_POINT();
    atomic_store(&l->cell, (uint16_t)n);
    l->leased = false;
    atomic_fetch_add(&s->cells, 1);
    return 0;
}

void hf__shm_cell_lock_give_cell(struct shm *s, struct shm_cell_lock *l)
{
    unsigned cell = atomic_exchange(&l->cell, SHM_NO_CELL);

    if (cell == SHM_NO_CELL)
        return;
    hf__shm_cell_drop(s, cell);
    atomic_fetch_sub(&s->cells, 1);
}

int hf__shm_cell_lock_enqueue(struct shm *s, struct shm_cell_lock *l,
                              struct hf__req *req)
{
    struct shm_cell *c = shm_cell_lock_cell(s, l);
    int rc = hf__shm_wait_make(s, &l->lock, req->remote);
    uint64_t ticket;

    if (rc)
        return rc;
    ticket = atomic_fetch_add(&l->lock.entry->next_ticket, 1) + 1;
    atomic_store(&c->want, (uint16_t)shm_cell_lock_wanted(l, req));
    atomic_store(&c->lease, ticket & 0xffffff);
    atomic_store(&c->rung_for, (uint8_t)~ticket);
    l->leased = req->fixed;
    hf__shm_wait_begin(s, &l->lock, atomic_load(&l->cell), req);
    atomic_store(&c->ticket, ticket);
    SHM_POINT();
    return 0;
}

void hf__shm_cell_lock_dequeue(struct shm *s, struct shm_cell_lock *l)
{
    struct shm_cell *c = &s->file->cell[hf__shm_wait_end(s, &l->lock)];

    SHM_POINT();
    atomic_store(&c->ticket, 0);
    SHM_POINT();
    hf__shm_unwatch(s, c, 0);
}
