/*
 * Notifies holders that listen that their lock is wanted, or that their hold
 * was broken. To notify is to leave a mark at the hold and to ring the doorbell
 * (wakeup.h). The doorbell wakes the helper thread of the holder, which looks
 * for marks at all locks of its client. A client that does not listen gets no
 * mark and is not woken.
 *
 * A broken mutex gets no mark, because its entry has room for one mark only,
 * which the next holder may need. Instead, a flag in the slot says that a mutex
 * was broken, and the helper thread checks all mutexes.
 *
 * A mark belongs to one hold. For a mutex the mark is the word of its grant.
 * For a shared kind the marks are two bits of `minted`, which the owner of the
 * cell resets for each hold. A client that sets a mark holds the table lock, so
 * that only one client does so at a time.
 *
 * If the owner has not noticed its grant yet, the mark stays until the owner
 * has noticed the grant, because the program must not be notified of a hold
 * that it does not know. (To take a permit that is free, a thread swaps the
 * word first and ends its attempt afterwards. A mark that is set between these
 * two steps is lost.)
 *
 * The mutex of the client guards the list of its locks.
 */
#include "notify.h"

#include "base/list.h"
#include "cell_lock.h"
#include "liveness.h"
#include "lock_state.h"
#include "mutex_word.h"
#include "name_table.h"
#include "queue.h"
#include "shared_word.h"
#include "wakeup.h"

static void notify_ring(struct shm *s, uint32_t owner)
{
    SHM_POINT();
    atomic_fetch_add(&shm_slot_of(s, owner)->marks, 1);
    SHM_POINT();
    hf__shm_ring_doorbell(s, owner);
}

/* Sets one flag for all mutexes of the owner, because the entry of a mutex has
 * room for one mark only, which the next holder may need. */
void hf__shm_notify_broken(struct shm *s, uint32_t owner)
{
    struct shm_slot *slot = shm_slot_of(s, owner);

    if (!atomic_load(&slot->listens))
        return;
    SHM_POINT();
    atomic_store(&slot->broken, 1);
    notify_ring(s, owner);
}

static void notify_ask_holder(struct shm *s, struct shm_entry *e, uint64_t word)
{
    uint32_t owner = shm_owner(word);

    if (!atomic_load(&shm_slot_of(s, owner)->listens))
        return;
    SHM_POINT();
    atomic_store(&e->asked, word & SHM_GRANT_MASK);
    notify_ring(s, owner);
}

void hf__shm_notify_cell(struct shm *s, unsigned cell, uint32_t owner,
                         uint8_t what)
{
    if (!atomic_load(&shm_slot_of(s, owner)->listens))
        return;
    SHM_POINT();
    atomic_fetch_or(&s->file->cell[cell].minted, what);
    notify_ring(s, owner);
}

static int notify_ask_cells(struct shm *s, unsigned index)
{
    struct shm_entry *e = &s->file->entry[index];
    uint64_t word = atomic_load(&e->word);
    int rc = HF_ENOTOWNER;
    unsigned n = 0;

    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++) {
        struct shm_cell *c = &s->file->cell[n];

        if (!hf__shm_shared_is_held_by(s, word, n))
            continue;
        rc = HF__DONE;
        hf__shm_notify_cell(s, n, atomic_load(&c->owner), SHM_ASKED);
        if (!shm_has(s->file, atomic_load(&e->word), n))
            /* The hold has ended; the mark must not count as a mark on the next
             * hold. */
            atomic_fetch_and(&c->minted, (uint8_t)~SHM_ASKED);
    }
    return rc;
}

int hf__shm_notify_ask(struct shm *s, const struct hf__query *q)
{
    int index = hf__shm_name_find(s, q->name, q->name_len, false);
    struct shm_entry *e;
    uint64_t word;

    if (index < 0)
        return HF_ENOTOWNER;
    e = &s->file->entry[index];
    if (shm_is_shared(e))
        return notify_ask_cells(s, (unsigned)index);
    word = atomic_load(&e->word);
    if (shm_kind(e) != HF_MUTEX || !shm_owner(word) ||
        hf__shm_gone(s, shm_owner(word)))
        return HF_ENOTOWNER;
    notify_ask_holder(s, e, word);
    return HF__DONE;
}

size_t hf__shm_notify_lock_size(const struct shm *s, uint8_t kind)
{
    size_t size = kind == HF_MUTEX ? sizeof(struct shm_lock)
                                   : sizeof(struct shm_cell_lock);

    return s->listens ? size + sizeof(struct shm_listener) : size;
}

static struct shm_listener *notify_listener_of(const struct shm *s,
                                               struct shm_lock *l)
{
    return (struct shm_listener *)(void *)((char *)l + hf__shm_notify_lock_size(
                                                           s, l->kind)) -
           1;
}

void hf__shm_notify_add(struct shm *s, struct shm_lock *l,
                        struct hf__remote *remote)
{
    struct shm_listener *listener = notify_listener_of(s, l);

    if (!s->listens)
        return;
    listener->remote = remote;
    hf__list_add(s->listeners, listener);
}

void hf__shm_notify_remove(struct shm *s, struct shm_lock *l)
{
    struct shm_listener *listener = notify_listener_of(s, l);

    if (s->listens)
        hf__list_remove(s->listeners, listener);
}

static void notify_check_mutex_mark(struct shm *s, struct hf__remote *remote)
{
    struct shm_lock *l = remote->impl;
    struct shm_entry *e = l->entry;
    uint64_t mark = atomic_load(&e->asked), word = atomic_load(&e->word);
    bool is_held = shm_is_grant(mark, word);

    if (shm_owner(mark) != s->me)
        return;
    if (is_held && !shm_is_grant(mark, atomic_load(&l->mine)))
        s->early_marks = true;
    else if (atomic_compare_exchange_strong(&e->asked, &mark, 0) && is_held)
        s->core->wanted(s->client, remote,
                        shm_token(atomic_load(&e->epoch), word));
}

static void notify_check_cell_mark(struct shm *s, struct hf__remote *remote)
{
    struct shm_cell_lock *l = remote->impl;
    unsigned cell = atomic_load(&l->cell);
    shm_u8 *minted = &s->file->cell[cell % SHM_CELLS].minted;
    uint8_t mark = atomic_load(minted);
    bool is_asked;

    if (cell == SHM_NO_CELL || !(mark & (SHM_ASKED | SHM_BROKEN)))
        return;
    is_asked = (mark & SHM_ASKED) && shm_cell_lock_has(s, l);
    /* The mark is checked again later if the owner has not noticed its grant,
     * or if another mark came in the meantime. */
    if ((is_asked && !(mark & SHM_MINTED)) ||
        !atomic_compare_exchange_strong(minted, &mark, mark & SHM_MINTED))
        s->early_marks = true;
    else if (is_asked)
        s->core->wanted(s->client, remote, atomic_load(&l->lock.mine));
    else
        s->core->lost(s->client, remote, atomic_load(&l->lock.hold_id), NULL);
}

static void notify_check_mutexes(struct shm *s)
{
    for (struct shm_listener *listener = s->listeners; listener;
         listener = listener->next) {
        struct shm_lock *l = listener->remote->impl;

        if (l->kind == HF_MUTEX &&
            !shm_is_grant(atomic_load(&l->entry->word), atomic_load(&l->mine)))
            s->core->lost(s->client, listener->remote, atomic_load(&l->hold_id),
                          NULL);
    }
}

void hf__shm_notify_poll(struct shm *s)
{
    struct shm_slot *slot = shm_slot_of(s, s->me);
    uint32_t marks = atomic_load(&slot->marks);

    if (!s->listens || (marks == s->marks_seen && !s->early_marks))
        return;
    s->marks_seen = marks;
    s->early_marks = false;
    if (atomic_exchange(&slot->broken, 0))
        notify_check_mutexes(s);
    for (struct shm_listener *listener = s->listeners; listener;
         listener = listener->next)
        if (listener->remote->kind == HF_MUTEX)
            notify_check_mutex_mark(s, listener->remote);
        else if (listener->remote->kind != HF_LATCH)
            notify_check_cell_mark(s, listener->remote);
}
