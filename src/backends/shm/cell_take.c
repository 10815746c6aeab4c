/*
 * Cells. A client takes a free one when it needs it, without the lock of the
 * tables: near the number of its slot, so that clients do not all try the same.
 * It is given back when it is in no queue, has no permits and no word names it.
 */
#include "shm.h"

/* Up to where cells are looked for. Before one is taken, lest it be lost. */
static void raise_high(struct shm *s, uint32_t high)
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
            raise_high(s, n + 1);
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

/* Its name goes first: who has seen it in a queue before must not take it for
 * the next owner's wait for the same. */
void hf__shm_cell_free(struct shm_cell *c)
{
    atomic_store_explicit(&c->name, SHM_NO_NAME, memory_order_relaxed);
    SHM_POINT();
    atomic_store(&c->owner, 0);
}

int hf__shm_wait_make(struct shm *s, struct shm_lock *l,
                      struct hf__remote *remote)
{
    struct shm_wait *wait = atomic_load(&l->wait);

    if (!wait) {
        wait = s->core->alloc(s->client, sizeof(*wait));
        if (!wait)
            return s->core->why(s->client, HF_ENOMEM, "out of memory");
        atomic_init(&wait->cell, SHM_NO_CELL);
        wait->remote = remote;
        atomic_store(&l->wait, wait);
    }
    return hf__shm_file_still_there(s) ? 0 : HF_EBACKEND;
}

void hf__shm_wait_begin(struct shm *s, struct shm_lock *l, unsigned cell,
                        const struct hf__req *req)
{
    struct shm_wait *wait = atomic_load(&l->wait);
    struct shm_cell *c = &s->file->cell[cell];

    atomic_store(&c->lease_ms, req->fixed ? req->lease_ms : 0);
    atomic_store(&c->is_async, req->is_async);
    atomic_store(&c->announced, 0);
    atomic_store(&c->since, shm_wall_ms());
    wait->announced = false;
    wait->dying = 0;
    for (unsigned i = 0; i < SHM_WATCHED; i++)
        atomic_store(&wait->watch.slot[i], 0);
    atomic_store(&wait->cell, (uint16_t)cell);
    l->state = SHM_QUEUED;
    SHM_POINT();
}

unsigned hf__shm_wait_end(struct shm *s, struct shm_lock *l)
{
    struct shm_wait *wait = atomic_load(&l->wait);

    hf__shm_async_remove(s, wait);
    l->state = SHM_IDLE;
    return atomic_exchange(&wait->cell, SHM_NO_CELL);
}

/* A wait may be over in a microsecond. */
bool hf__shm_file_still_there(struct shm *s)
{
    uint64_t now = shm_wall_ms() / 64;

    if (!shm_is_lost(s) &&
        atomic_load_explicit(&s->there_at, memory_order_relaxed) == now)
        return true;
    atomic_store_explicit(&s->there_at, now, memory_order_relaxed);
    return hf__shm_file_is_there(s);
}

unsigned hf__shm_queue_next(struct shm *s, unsigned index, unsigned from)
{
    struct shm_file *f = s->file;
    unsigned high = atomic_load(&f->header.cells_high) % (SHM_CELLS + 1);

    while (from < high) {
        uint64_t bits =
            atomic_load(&f->entry[index].cells[from / 64]) >> from % 64;

        if (!bits) {
            from = (from / 64 + 1) * 64;
            continue;
        }
        from += (unsigned)__builtin_ctzll(bits);
        if (atomic_load(&f->cell[from].owner) &&
            atomic_load(&f->cell[from].name) == index)
            return from;
        from++;
    }
    return SHM_NO_CELL;
}

/* Out of the entry's list, whatever it is there for. False: it has permits
 * still, and could not give them back. */
static bool leave_entry(struct shm *s, unsigned index, unsigned cell)
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
    /* What could not be given back stays in its list: when its owner is dead,
     * others take it back. */
    if ((atomic_load(&s->file->entry[index].cells[cell / 64]) >> cell % 64 &
         1) &&
        !leave_entry(s, index, cell))
        return;
    hf__shm_unwatch(s, c, 0);
    SHM_POINT();
    hf__shm_cell_free(c);
}
