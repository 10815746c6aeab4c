/* Takes back what dead clients left: their cells, holds, names and slots. */
#include "dead_clients.h"

#include "cell_free.h"
#include "liveness.h"
#include "mutex_word.h"
#include "name_table.h"
#include "retry.h"
#include "table_lock.h"
#include "wakeup.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

void hf__shm_sweep_client(struct shm *s, uint32_t slot, bool reclaim)
{
    struct shm_file *f = s->file;
    uint32_t cells = atomic_load(&f->header.cells_high) % (SHM_CELLS + 1);
    uint32_t names = atomic_load(&f->header.names_high) % (SHM_NAMES + 1);

    for (unsigned i = 0; i < cells; i++)
        if ((atomic_load(&f->cell[i].owner) & SHM_SLOT_MASK) == slot)
            hf__shm_cell_drop(s, i);
    for (unsigned i = 0; i < names; i++) {
        struct shm_entry *e = &f->entry[i];
        uint64_t bit = 1ULL << slot % 64;
        struct shm_retry retry = {.of = e};
        uint64_t w;

        if (!atomic_load(&f->hash[i]))
            continue;
        while (shm_kind(e) == HF_MUTEX &&
               (w = atomic_load(&e->word), (w & SHM_SLOT_MASK) == slot) &&
               hf__shm_retry(s, &retry))
            hf__shm_mutex_pass(s, i, w);
        if (!(atomic_load(&e->attached[slot / 64]) & bit))
            continue;
        SHM_POINT();
        atomic_fetch_and(&e->attached[slot / 64], ~bit);
        if (reclaim)
            hf__shm_name_reclaim_locked(s, i);
    }
}

static void clients_bury_locked(struct shm *s, uint32_t n)
{
    struct shm_slot *slot = &s->file->slot[n];

    SHM_POINT();
    hf__shm_futex_wake(&slot->alive, INT_MAX);
    hf__shm_sweep_client(s, n, true);
    SHM_POINT();
    atomic_store(&slot->state, SHM_SLOT_FREE);
}

/* Returns whether this process checks the byte lock of the slot. For each check
 * the kernel searches all byte locks of the file; with many clients each
 * process therefore checks only some slots. */
static bool clients_is_checked_now(uint32_t slot, uint32_t high)
{
    return high <= 64 || (slot ^ (uint32_t)getpid()) % 64 == 0;
}

void hf__shm_bury_all_locked(struct shm *s)
{
    uint32_t high = atomic_load(&s->file->header.slots_high) % SHM_SLOTS;

    for (uint32_t i = 1; i <= high; i++) {
        struct shm_slot *slot = &s->file->slot[i];
        uint32_t owner = i | (atomic_load(&slot->gen) & 0xff) << 12;

        if (atomic_load(&slot->state) != SHM_SLOT_USED)
            continue;
        if ((kill((pid_t)atomic_load(&slot->pid), 0) && errno == ESRCH) ||
            (clients_is_checked_now(i, high) && hf__shm_is_file_closed(s, i)))
            hf__shm_mark_unmarked(s, i);
        if (hf__shm_gone(s, owner))
            clients_bury_locked(s, i);
    }
}

void hf__shm_bury(struct shm *s, uint32_t owner)
{
    struct shm_thread thread;

    if (!hf__shm_tables_trylock(s, &thread))
        return; /* `owner` is buried later, at the latest when the next client
                   opens the file */
    if (hf__shm_is_registered(shm_slot_of(s, owner), owner) &&
        hf__shm_gone(s, owner))
        clients_bury_locked(s, owner & SHM_SLOT_MASK);
    hf__shm_tables_unlock(s, &thread);
}
