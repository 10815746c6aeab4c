/*
 * Changes the word of a read-write lock or a semaphore (layout.h), and with it
 * the permits of a cell. The owner of the cell does this, or another client on
 * its behalf.
 *
 * In the queue each waiter watches the one before it, as for a mutex; the first
 * watches all holders. While a waiter is first, no holder is added, so this
 * waiter need not watch others later.
 *
 * To *pass* is to grant to the first waiters, in their order, while their
 * permits fit; no waiter overtakes another.
 *
 * event                    | who is woken              | who notices if that
 *                          |                           | one dies
 * -------------------------+---------------------------+-----------------------
 * permits are given back   | the first that still      | those that watch a
 * or taken back, and       | waits, unless it watches  | holder, as below
 * passed                   | all holders already; then |
 *                          | those granted, the last   |
 *                          | of them first             |
 * the client that passes   | the first of them, which  | the second of them,
 * dies before it has rung  | watches that client: it   | which watches the
 * all of those granted     | rings the rest            | first
 * a holder dies            | the first waiter: it      | the second; if the
 *                          | takes back the permits,   | first is stopped, any
 *                          | and passes them           | waiter at its next
 *                          |                           | check
 * the lease of a holder    | the first waiter, by its  | as above
 * ends                     | own clock                 |
 * a waiter leaves or dies  | the one after it          | the one after that
 * a waiter enters with a   | the one after it          | the one after that
 * ticket below another's   |                           |
 *
 * The first of those granted is rung last. It watches the client that passes,
 * if that client was a holder: if that client dies before it has rung all of
 * those granted, the first wakes and sees that it was not rung (rung_for). If
 * the client that passes was not a holder, the first notices its death only at
 * its next check (watch.c). The first client that still waits must watch all
 * holders from then on. It does so already if the only holder is the one that
 * was before it in the queue.
 */
#include "shared_word.h"

#include "liveness.h"
#include "queue.h"
#include "retry.h"
#include "wakeup.h"

/* Copies what the word says of the cell that it names into the `hold` of that
 * cell. Returns false if the word has changed. The swap is needed even if it
 * changes only the version: if another client is about to write the same copy,
 * its swap then fails. */
static bool word_write_down(struct shm *s, struct shm_entry *e, uint64_t word)
{
    shm_u64 *hold = &s->file->cell[shm_named(word)].hold;
    uint64_t old = atomic_load(hold);
    uint64_t new = (old & ~0xfffULL) + 0x1000 + shm_named_has(word);

    if (atomic_load(&e->word) != word)
        return false;
    SHM_POINT();
    return atomic_compare_exchange_strong(hold, &old, new);
}

bool hf__shm_shared_change(struct shm *s, struct shm_entry *e, uint64_t *word,
                           unsigned cell, unsigned permits)
{
    uint64_t old = *word, new;

    if ((old & SHM_NAMED) && shm_named(old) != cell &&
        !word_write_down(s, e, old))
        return false;
    new = shm_changed(old, cell, permits,
                      shm_used(old) - shm_has(s->file, old, cell) + permits);
    SHM_POINT();
    if (!atomic_compare_exchange_strong(&e->word, &old, new))
        return false;
    SHM_POINT();
    *word = new;
    return true;
}

/* If the cell has permits and a ticket, the ticket is that of the wait that
 * ended with these permits. The ticket is cleared, because a cell with a ticket
 * and without permits would wait again. */
bool hf__shm_shared_take_back(struct shm *s, struct shm_entry *e,
                              uint64_t *word, unsigned cell)
{
    shm_u64 *place = &s->file->cell[cell].ticket;
    uint64_t ticket = atomic_load(place);

    if (ticket) {
        if (atomic_load(&e->word) != *word)
            return false;
        SHM_POINT();
        atomic_compare_exchange_strong(place, &ticket, 0);
    }
    return hf__shm_shared_change(s, e, word, cell, 0);
}

#define QUEUE_HEAD 64u

/* The first waiters, in their order. */
struct queue_head {
    unsigned total, len;
    struct shm_queue_place at[QUEUE_HEAD];
};

static void word_queue_head_add(struct queue_head *up, uint64_t ticket,
                                unsigned cell)
{
    unsigned i = up->len;

    up->total++;
    if (i == QUEUE_HEAD && up->at[i - 1].ticket < ticket)
        return;
    if (i < QUEUE_HEAD)
        up->len++;
    else
        i--;
    for (; i && up->at[i - 1].ticket > ticket; i--)
        up->at[i] = up->at[i - 1];
    up->at[i] = (struct shm_queue_place){ticket, cell};
}

/* Reads the first waiters as of `word`. */
static void word_queue_head_read(struct shm *s, unsigned index, uint64_t word,
                                 struct queue_head *up)
{
    struct shm_file *f = s->file;
    unsigned n = 0;

    up->total = up->len = 0;
    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++) {
        struct shm_cell *c = &f->cell[n];
        uint64_t ticket = atomic_load(&c->ticket);

        if (ticket && !shm_has(f, word, n) &&
            hf__shm_alive(s, atomic_load(&c->owner)))
            word_queue_head_add(up, ticket, n);
    }
}

/* The result of one pass. */
struct passed {
    unsigned len, self;
    unsigned first_left; /* the first cell that still waits, or SHM_NO_CELL */
    uint32_t granted[QUEUE_HEAD]; /* the cell and, from bit 12 on, 8 bits of its
                                     ticket */
};

static void word_ring_granted(struct shm *s, unsigned cell, uint64_t ticket,
                              bool is_self)
{
    struct shm_cell *c = &s->file->cell[cell];

    if ((uint8_t)atomic_load(&c->ticket) != (uint8_t)ticket)
        return; /* its owner has seen the grant, and the wait is over */
    if (!is_self)
        hf__shm_ring_cell(s, cell);
    /* Set after ringing: if we die in between, the owner of the cell rings the
     * rest. */
    atomic_store(&c->rung_for, (uint8_t)ticket);
    SHM_POINT();
}

/* Rings the granted cells from number `from` on, the last of them first. */
static void word_ring_granted_from(struct shm *s, struct passed *p,
                                   unsigned from)
{
    while (p->len > from) {
        uint32_t last = p->granted[--p->len];

        word_ring_granted(s, last & 0xfff, last >> 12,
                          (last & 0xfff) == p->self);
    }
}

/* Writes the lease of the cell, which begins with the grant. Returns false if
 * the word has changed, or if another client changed the lease. */
static bool word_begin_lease(struct shm *s, struct shm_entry *e, uint64_t word,
                             const struct shm_queue_place *at)
{
    struct shm_cell *c = &s->file->cell[at->cell];
    uint32_t lease_ms = atomic_load(&c->lease_ms);
    uint64_t old = atomic_load(&c->lease), new;

    if (!lease_ms)
        return true;
    if (atomic_load(&e->word) != word)
        return false;
    new = shm_to_ms(s->core->now() + lease_ms * HF__MS) << 24;
    SHM_POINT();
    return atomic_compare_exchange_strong(&c->lease, &old,
                                          new | (at->ticket & 0xffffff));
}

static unsigned word_wanted(struct shm_cell *c)
{
    unsigned want = atomic_load(&c->want) & SHM_PERMITS_MAX;

    return want ? want : 1; /* never 0, even if the file is damaged */
}

/* Grants to the waiters in `up` while their permits fit, and notes them in `p`.
 * Returns false if the word has changed. */
static bool word_grant(struct shm *s, unsigned index, uint64_t *word,
                       const struct queue_head *up, struct passed *p)
{
    struct shm_entry *e = &s->file->entry[index];
    unsigned size = shm_size(e);

    for (unsigned i = 0; i < up->len; i++) {
        const struct shm_queue_place *at = &up->at[i];
        unsigned want = word_wanted(&s->file->cell[at->cell]);

        p->first_left = at->cell;
        if (shm_used(*word) + want > size)
            return true;
        /* If `granted` is full, rings all but the first, which would ring the
         * rest if we died. */
        if (p->len == QUEUE_HEAD)
            word_ring_granted_from(s, p, 1);
        if (!word_begin_lease(s, e, *word, at) ||
            !hf__shm_shared_change(s, e, word, at->cell, want))
            return false;
        p->granted[p->len++] = at->cell | (uint32_t)(at->ticket & 0xff) << 12;
    }
    p->first_left = SHM_NO_CELL;
    return true;
}

/* Returns whether the first client that still waits already watches everything
 * that it must. This is the case if the cell `last` is the only holder and gets
 * no lease, because that client watches `last`. */
static bool word_is_watched(struct shm *s, uint64_t word, unsigned last)
{
    struct shm_cell *c = &s->file->cell[last];

    return shm_used(word) == atomic_load(&c->want) &&
           !atomic_load(&c->lease_ms) && atomic_load(&c->announced) &&
           hf__shm_alive(s, atomic_load(&c->owner));
}

static void word_ring(struct shm *s, uint64_t word, struct passed *p)
{
    if (p->first_left != SHM_NO_CELL &&
        !word_is_watched(s, word, p->granted[p->len - 1] & 0xfff))
        hf__shm_ring_cell(s, p->first_left);
    word_ring_granted_from(s, p, 0);
}

bool hf__shm_shared_pass(struct shm *s, unsigned index, unsigned self)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_retry retry = {.of = e};
    struct queue_head up;
    struct passed p;
    bool moved = false;
    uint64_t w;

    p.len = 0;
    p.self = self;
    p.first_left = SHM_NO_CELL;
    do {
        w = atomic_load(&e->word);
        if (!(w & SHM_QUEUE))
            break;
        word_queue_head_read(s, index, w, &up);
        if (!word_grant(s, index, &w, &up, &p)) {
            moved = true;
            continue;
        }
        if (p.first_left != SHM_NO_CELL)
            break; /* the next waiter's permits do not fit */
        if (up.total > up.len)
            continue;
        SHM_POINT();
        moved = true;
        if (atomic_compare_exchange_strong(&e->word, &w,
                                           (w + SHM_CHANGE_ONE) & ~SHM_QUEUE))
            break;
    } while (hf__shm_retry(s, &retry));
    moved = moved || p.len;
    if (p.len)
        word_ring(s, w, &p);
    return moved;
}

/* Finds, of the cells that were granted permits but were not rung for them, the
 * cell with the highest ticket below `below`. Returns false if there is
 * none. */
static bool word_unrung(struct shm *s, unsigned index, uint64_t below,
                        struct shm_queue_place *at)
{
    struct shm_file *f = s->file;
    uint64_t w = atomic_load(&f->entry[index].word);
    unsigned n = 0;

    at->ticket = 0;
    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++) {
        struct shm_cell *c = &f->cell[n];
        uint64_t ticket = atomic_load(&c->ticket);

        if (ticket > at->ticket && ticket < below && shm_has(f, w, n) &&
            atomic_load(&c->rung_for) != (uint8_t)ticket)
            *at = (struct shm_queue_place){ticket, n};
    }
    return at->ticket;
}

void hf__shm_shared_pass_on(struct shm *s, unsigned index, unsigned cell,
                            uint64_t ticket)
{
    struct shm_queue_place at = {UINT64_MAX, 0};
    struct shm_retry retry = {.of = &s->file->entry[index]};
    struct shm_queue_scan r;

    if (atomic_load(&s->file->cell[cell].rung_for) == (uint8_t)ticket)
        return;
    hf__shm_shared_pass(s, index, cell);
    hf__shm_queue_scan(s, index, 0, 0, &r);
    if (r.first != SHM_NO_CELL)
        hf__shm_ring_cell(s, r.first);
    while (word_unrung(s, index, at.ticket, &at) && hf__shm_retry(s, &retry))
        word_ring_granted(s, at.cell, at.ticket, at.cell == cell);
}

bool hf__shm_shared_clear(struct shm *s, unsigned index, unsigned cell)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_retry retry = {.of = e};
    uint64_t w;

    if (atomic_load(&s->file->cell[cell].ticket)) {
        SHM_POINT();
        atomic_store(&s->file->cell[cell].ticket, 0);
        SHM_POINT();
        hf__shm_queue_stir(s, e, 0);
    }
    do {
        w = atomic_load(&e->word);
        if (shm_has(s->file, w, cell)) {
            if (hf__shm_shared_take_back(s, e, &w, cell))
                hf__shm_shared_pass(s, index, SHM_NO_CELL);
            continue;
        }
        if (!shm_names(w, cell))
            return true;
        SHM_POINT();
        if (word_write_down(s, e, w) &&
            atomic_compare_exchange_strong(&e->word, &w,
                                           (w + SHM_CHANGE_ONE) &
                                               ~(SHM_NAMED | 0xffffffULL)))
            return true;
    } while (hf__shm_retry(s, &retry));
    return false;
}

bool hf__shm_shared_is_held_by(struct shm *s, uint64_t word, unsigned cell)
{
    return shm_has(s->file, word, cell) &&
           !hf__shm_gone(s, atomic_load(&s->file->cell[cell].owner));
}
