/*
 * The table of names. An entry is in use while a client that is alive has a
 * handle on it, while a client holds it or waits for it, or while it is a latch
 * that is set. After that it is taken back. Without the table lock, only
 * attached clients read or change an entry. Under that lock, an entry to which
 * no client is attached can therefore be given another name. A client that
 * gives up a name never waits for the table lock: if another thread holds it,
 * the next client that attaches or opens takes the name back.
 *
 * Tokens must continue to rise when an entry is taken back and created again,
 * when the file was deleted, and after a reboot. An entry therefore starts from
 * the wall clock, in units of 64 ns: only a constant rate of more than 15
 * million grants of one name per second would let tokens get ahead of the
 * clock. Nor does an entry start below `floor` in the header, the highest token
 * of the entries taken back so far. Lua and JSON readers need tokens that are
 * exact in a double (at most 2^53): because the clock is counted from 2025,
 * tokens are exact until 2043.
 */
#include "name_table.h"

#include "base/hash.h"

#include <string.h>
#include <time.h>

#define EPOCH_2025 1735689600

static uint32_t name_table_hash_of(const char *name, size_t len)
{
    uint32_t hash = hf__hash32(HF__HASH32, name, len);

    return hash ? hash : 1;
}

int hf__shm_name_find(struct shm *s, const char *name, size_t len,
                      bool attached)
{
    struct shm_file *f = s->file;
    uint32_t high = atomic_load(&f->header.names_high) % (SHM_NAMES + 1);
    uint32_t hash = name_table_hash_of(name, len);

    for (uint32_t i = 0; i < high; i++)
        if ((!attached || (s->lock_counts && s->lock_counts[i])) &&
            atomic_load_explicit(&f->hash[i], memory_order_relaxed) == hash &&
            f->entry[i].name_len == len && len <= SHM_NAME_MAX &&
            !memcmp(f->entry[i].name, name, len))
            return (int)i;
    return -1;
}

static uint64_t name_table_first_token(struct shm *s)
{
    uint64_t floor = atomic_load(&s->file->header.floor);
    struct timespec now;
    uint64_t token = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec > EPOCH_2025)
        token = (uint64_t)(now.tv_sec - EPOCH_2025) * (1000000000 / 64) +
                (uint64_t)now.tv_nsec / 64;
    return token > floor ? token : floor;
}

void hf__shm_name_make_locked(struct shm *s, unsigned index,
                              const struct hf__remote *remote)
{
    struct shm_file *f = s->file;
    struct shm_entry *e = &f->entry[index];
    uint64_t token = name_table_first_token(s);

    memset(e, 0, sizeof(*e));
    if (remote->kind == HF_MUTEX) {
        atomic_store(&e->epoch, token >> SHM_EPOCH_SHIFT);
        atomic_store(&e->word, token << 40);
    } else {
        atomic_store(&e->epoch, token);
    }
    /* A client may try to write the lease of a cell when the cell already
     * belongs to another entry. The client notices this if the tickets of the
     * two waits differ. In practice they do: the tickets of an entry start at
     * its first token, which comes from the clock. */
    atomic_store(&e->next_ticket, token);
    atomic_store(&e->kind, shm_entry_kind(remote));
    atomic_store(&e->permits, remote->permits);
    atomic_store(&e->name_len, remote->name_len);
    memcpy(e->name, remote->name, remote->name_len);
    if (index >= atomic_load(&f->header.names_high))
        atomic_store(&f->header.names_high, index + 1);
    SHM_POINT();
    atomic_store(&f->hash[index],
                 name_table_hash_of(remote->name, remote->name_len));
    SHM_POINT();
}

static bool name_table_is_any(shm_u64 *map)
{
    for (unsigned i = 0; i < SHM_MAP_LEN; i++)
        if (atomic_load(&map[i]))
            return true;
    return false;
}

/* Returns whether the mutex is held or the latch is set. (A holder of a shared
 * kind has a cell.) */
static bool name_table_is_taken(struct shm_entry *e)
{
    uint64_t word = atomic_load(&e->word);
    unsigned kind = shm_kind(e);

    return kind == HF_LATCH ? shm_left(word)
                            : kind == HF_MUTEX && shm_owner(word);
}

bool hf__shm_name_reclaim_locked(struct shm *s, unsigned index)
{
    struct shm_file *f = s->file;
    struct shm_entry *e = &f->entry[index];
    uint64_t token;

    if (name_table_is_taken(e) || name_table_is_any(e->attached) ||
        name_table_is_any(e->cells))
        return false;
    token = shm_entry_token(e);
    SHM_POINT();
    if (token > atomic_load(&f->header.floor))
        atomic_store(&f->header.floor, token);
    SHM_POINT();
    atomic_store(&f->hash[index], 0);
    return true;
}

/* A client that is killed may leave a name without counting it in `unswept`.
 * This does no harm: the name is taken back when the table is full, or when a
 * client wants the name as another kind. */
void hf__shm_names_sweep_locked(struct shm *s)
{
    struct shm_file *f = s->file;
    uint32_t unswept = atomic_load(&f->header.unswept);
    uint32_t high = atomic_load(&f->header.names_high) % (SHM_NAMES + 1);

    if (!unswept)
        return;
    for (unsigned i = 0; i < high; i++)
        if (atomic_load(&f->hash[i]))
            hf__shm_name_reclaim_locked(s, i);
    atomic_compare_exchange_strong(&f->header.unswept, &unswept, 0);
}
