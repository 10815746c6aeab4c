/*
 * Takes a lock away from its holders, for hf_break. The caller holds the table
 * lock, but the lock itself may change while it is being broken. Only the grant
 * that was read is broken: if the entry's word, which describes the grant, has
 * changed since then, it is read again.
 */
#include "break.h"

#include "inspect.h"
#include "latch.h"
#include "mutex_word.h"
#include "name_table.h"
#include "notify.h"
#include "queue.h"
#include "retry.h"
#include "shared_word.h"

#include <string.h>

static bool break_is_meant(struct shm *s, struct hf__query *q, uint32_t owner,
                           uint64_t token)
{
    char text[64];

    hf__shm_inspect_owner(s, text, owner);
    if ((!q->token || q->token == token) &&
        (!q->owner[0] || strcmp(q->owner, text) == 0))
        return true;
    q->count = token;
    return false;
}

/* Returns whether the cell still belongs to this entry, and has not been given
 * to another name since it was found. The caller must read the word before this
 * call and swap it afterwards. If the cell is removed in between, the swap
 * fails, because a client that removes a cell stirs the word before it frees
 * the cell. */
static bool break_is_here(struct shm *s, unsigned index, unsigned cell)
{
    return hf__shm_queue_next(s, index, cell) == cell;
}

/* Returns the token of the hold that the cell had when the caller read the
 * word. Returns 0 if the token is not known yet because the client that owns
 * the cell has not seen its grant. */
static uint64_t break_token_of(struct shm *s, struct shm_entry *e,
                               unsigned cell)
{
    return atomic_load(&s->file->cell[cell].minted) & SHM_MINTED
               ? atomic_load(&e->epoch)
               : 0;
}

/* Returns HF__DONE if it broke the hold; EBUSY if the query names another hold;
 * ENOTOWNER if the cell holds nothing; or EBACKEND. */
static int break_cell(struct shm *s, unsigned index, unsigned cell,
                      struct hf__query *q)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_retry retry = {.of = e};
    uint32_t owner;
    uint64_t w;

    do {
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
        w = atomic_load(&e->word);
        if (!break_is_here(s, index, cell) || !shm_has(s->file, w, cell))
            return HF_ENOTOWNER;
        owner = atomic_load(&s->file->cell[cell].owner);
        if (!break_is_meant(s, q, owner, break_token_of(s, e, cell)))
            return HF_EBUSY;
    } while (!hf__shm_shared_take_back(s, e, &w, cell));
    hf__shm_notify_cell(s, cell, owner, SHM_BROKEN);
    return HF__DONE;
}

static int break_shared(struct shm *s, unsigned index, struct hf__query *q)
{
    struct shm_entry *e = &s->file->entry[index];
    uint64_t w = atomic_load(&e->word), held[SHM_MAP_LEN] = {0};
    unsigned n = 0;
    int rc = HF_ENOTOWNER, one;

    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (hf__shm_shared_is_held_by(s, w, n))
            held[n / 64] |= 1ULL << n % 64;
    SHM_POINT();
    for (n = 0; n < SHM_CELLS; n++) {
        if (!(held[n / 64] >> n % 64 & 1))
            continue;
        one = break_cell(s, index, n, q);
        if (one == HF_EBACKEND ||
            (rc && rc != HF_EBACKEND && one != HF_ENOTOWNER))
            rc = one;
    }
    hf__shm_shared_pass(s, index, SHM_NO_CELL);
    return rc;
}

int hf__shm_break(struct shm *s, struct hf__query *q)
{
    int found = hf__shm_name_find(s, q->name, q->name_len, false);
    unsigned index = (unsigned)found;
    struct shm_entry *e = &s->file->entry[index % SHM_NAMES];
    struct shm_retry retry = {.of = e};
    uint32_t left;
    uint64_t word;

    if (found < 0)
        return HF_ENOTOWNER;
    if (shm_kind(e) == HF_LATCH)
        return q->token || q->owner[0]
                   ? HF_ENOTOWNER
                   : hf__shm_latch_count_down(s, index, true, &left);
    if (shm_is_shared(e))
        return break_shared(s, index, q);
    do {
        word = atomic_load(&e->word);
        if (!hf__shm_inspect_is_held(s, index, word))
            return HF_ENOTOWNER;
        if (!break_is_meant(s, q, shm_owner(word),
                            shm_token(atomic_load(&e->epoch), word)))
            return HF_EBUSY;
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
    } while (!hf__shm_mutex_pass(s, index, word));
    hf__shm_notify_broken(s, shm_owner(word));
    return 0;
}
