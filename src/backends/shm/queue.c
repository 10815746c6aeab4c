/*
 * The queue of a name of any kind: the cells whose bits are set in the entry.
 * Cells of dead clients are skipped here and taken back when these clients are
 * buried (dead_clients.c).
 */
#include "queue.h"

#include "liveness.h"
#include "retry.h"

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

static void queue_scan_cell(struct shm_queue_scan *r, unsigned i,
                            uint32_t owner, uint64_t ticket, uint64_t mine)
{
    r->len++;
    if (r->first == SHM_NO_CELL || ticket < r->first_ticket) {
        r->first = i;
        r->first_owner = owner;
        r->first_ticket = ticket;
    }
    if (ticket < mine &&
        (r->before == SHM_NO_CELL || ticket > r->before_ticket)) {
        r->before = i;
        r->before_owner = owner;
        r->before_ticket = ticket;
    }
    if (ticket > mine &&
        (r->behind == SHM_NO_CELL || ticket < r->behind_ticket)) {
        r->behind = i;
        r->behind_ticket = ticket;
    }
}

static void queue_scan_once(struct shm *s, unsigned index, uint32_t except,
                            uint64_t mine, bool living,
                            struct shm_queue_scan *r)
{
    struct shm_file *f = s->file;
    bool shared = shm_is_shared(&f->entry[index]);
    uint64_t word = atomic_load(&f->entry[index].word);
    unsigned n = 0;

    *r = (struct shm_queue_scan){
        .first = SHM_NO_CELL, .before = SHM_NO_CELL, .behind = SHM_NO_CELL};
    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++) {
        uint32_t owner = shm_owner(atomic_load(&f->cell[n].owner));
        uint64_t ticket;

        SHM_POINT();
        /* cell_free.c clears `name` before `owner`. If `name` is still this
         * entry's index, `owner` therefore belongs to this wait and not to the
         * cell's next user. */
        if (!owner || atomic_load(&f->cell[n].name) != index)
            continue;
        ticket = atomic_load(&f->cell[n].ticket);
        if (ticket && owner != except && !(shared && shm_has(f, word, n)) &&
            (!living || hf__shm_alive(s, owner)))
            queue_scan_cell(r, n, owner, ticket, mine);
    }
}

static bool queue_is_dead(struct shm *s, unsigned cell)
{
    return cell != SHM_NO_CELL &&
           !hf__shm_alive(s, atomic_load(&s->file->cell[cell].owner));
}

/*
 * The first pass ignores whether clients are alive. Only if `first`, `before`
 * or `behind` turns out to be a cell of a dead client does this function read
 * the queue again, with live clients only.
 */
void hf__shm_queue_scan(struct shm *s, unsigned index, uint32_t except,
                        uint64_t mine, struct shm_queue_scan *r)
{
    queue_scan_once(s, index, except, mine, false, r);
    if (queue_is_dead(s, r->first) || queue_is_dead(s, r->before) ||
        queue_is_dead(s, r->behind))
        queue_scan_once(s, index, except, mine, true, r);
}

void hf__shm_queue_stir(struct shm *s, struct shm_entry *e, uint64_t flags)
{
    bool is_mutex = shm_kind(e) == HF_MUTEX;
    uint64_t w = atomic_load(&e->word), new;
    struct shm_retry retry = {.of = e};

    do {
        new = (is_mutex ? shm_stirred(w) : w + SHM_CHANGE_ONE) | flags;
        SHM_POINT();
    } while (!atomic_compare_exchange_weak(&e->word, &w, new) &&
             hf__shm_retry(s, &retry));
}
