/* Takes and gives back the slot that each client has while it is open.
 * liveness.c describes how the slot shows whether its client is alive. */
#include "client_slot.h"

#include "dead_clients.h"
#include "liveness.h"
#include "name_table.h"
#include "table_lock.h"
#include "wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

static int slot_take_locked(struct shm *s, struct shm_thread *me, uint32_t n,
                            bool has_byte, const char *label)
{
    struct shm_slot *slot = &s->file->slot[n];
    uint32_t gen = atomic_load(&slot->gen) + 1;
    uint32_t pid = (uint32_t)getpid();
    uint64_t start = 0;
    long threads;
    char state;

    if (hf__shm_read_stat(pid, &state, &threads, &start) != 1)
        return s->core->why(s->client, HF_EBACKEND,
                            "/proc/%u/stat: cannot read it", pid);
    if (n > atomic_load(&s->file->header.slots_high))
        atomic_store(&s->file->header.slots_high, n);
    atomic_store(&slot->gen, gen);
    atomic_store(&slot->pid, pid);
    atomic_store(&slot->start, start);
    atomic_store(&slot->doorbell, 0);
    atomic_store(&slot->watchers, 0);
    atomic_store(&slot->listens, s->listens);
    atomic_store(&slot->marks, 0);
    atomic_store(&slot->broken, 0);
    atomic_store(&slot->has_byte, has_byte);
    shm_label_put(slot->label, label);
    SHM_POINT();
    hf__shm_robust_begin(s, me, &slot->alive);
    SHM_POINT();
    atomic_store(&slot->state, SHM_SLOT_USED);
    s->me = n | (gen & 0xff) << 12;
    return 0;
}

/* Finds a free slot and tries to lock its byte; *has_byte says whether that
 * succeeded. The byte of a free slot may still be locked, by a child process of
 * a client that had the slot and was killed. A slot whose byte is unlocked is
 * preferred. Returns 0 if no slot is free. */
static uint32_t find_slot_locked(struct shm *s, bool *has_byte)
{
    uint32_t found = 0;

    *has_byte = false;
    for (uint32_t i = 1; i < SHM_SLOTS; i++) {
        struct flock byte = shm_slot_byte(i);

        if (atomic_load(&s->file->slot[i].state) != SHM_SLOT_FREE)
            continue;
        if (!found)
            found = i;
        *has_byte = !fcntl(s->fd, F_OFD_SETLK, &byte);
        if (*has_byte)
            return i;
        if (errno != EAGAIN && errno != EACCES)
            break; /* the file system does not support such locks */
    }
    return found;
}

int hf__shm_slot_take(struct shm *s, const char *label, hf__time by)
{
    hf__time left = by - s->core->now();
    struct shm_thread thread;
    int rc = hf__shm_tables_lock(s, &thread, left, left);
    bool has_byte;
    uint32_t n;

    if (rc)
        return rc;
    hf__shm_bury_all_locked(s);
    hf__shm_names_sweep_locked(s);
    n = find_slot_locked(s, &has_byte);
    if (n)
        rc = slot_take_locked(s, &thread, n, has_byte, label);
    hf__shm_tables_unlock(s, &thread);
    if (n)
        return rc;
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: %u clients have it open already, the limit; use "
                        "a second directory: shm:///directory",
                        s->path, SHM_SLOTS - 1);
}

/* Clears has_byte, then unlocks the byte for the next client of the slot;
 * hf__shm_is_file_closed relies on this order. Closing the descriptor might not
 * unlock the byte, because a child process may keep a copy of the descriptor
 * open for a long time. */
static void slot_give_byte(struct shm *s, uint32_t n)
{
    struct flock byte = shm_slot_byte(n);

    atomic_store(&s->file->slot[n].has_byte, 0);
    SHM_POINT();
    byte.l_type = F_UNLCK;
    fcntl(s->fd, F_OFD_SETLK, &byte);
    SHM_POINT();
}

/* Works even without the table lock, because it removes only what belongs to
 * this client, and frees the slot last. If another thread holds the lock, the
 * names that become unused are left for other clients to take back. */
void hf__shm_slot_give(struct shm *s)
{
    uint32_t n = s->me & SHM_SLOT_MASK;
    struct shm_slot *slot = &s->file->slot[n];
    struct shm_thread thread;
    bool locked = hf__shm_tables_trylock(s, &thread);

    hf__shm_sweep_client(s, n, locked);
    SHM_POINT();
    slot_give_byte(s, n);
    hf__shm_robust_clear(s, &slot->alive);
    SHM_POINT();
    atomic_store(&slot->state, SHM_SLOT_FREE);
    if (locked)
        hf__shm_tables_unlock(s, &thread);
    else
        atomic_fetch_add(&s->file->header.unswept, 1);
    hf__shm_futex_wake(&slot->alive, INT_MAX);
    hf__shm_robust_end(s);
}
