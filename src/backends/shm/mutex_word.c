/*
 * A mutex: its word and its queue. layout.h has the two rules: a grant changes
 * the count, and who changes what others decide by stirs the word afterwards.
 *
 * In the queue each waiter watches one liveness word: that of the waiter
 * before it, or the holder's if it is the first. So when a client dies, the
 * one behind it looks:
 * - It was the holder: the lock is passed on, on its behalf, by whoever sees
 *   it. Any number may try; the swap of the word lets one.
 * - It waited: the next to look skips it, and watches who is before it.
 * - It had passed the lock on and not rung yet: the first waiter watches it,
 *   and finds the word in its own name.
 * Who leaves the queue alive rings the one behind. Who enters it with a lower
 * ticket than somebody who is there already rings that one, too.
 *
 * A fair lock is never free while somebody waits: it is passed from holder to
 * holder. An unfair one becomes free, the first waiter is rung (WAKING), and
 * whoever comes may take it meanwhile; nobody else is rung until a waiter has
 * looked. That one then watches the new holder, so the rule above is kept.
 *
 * A cell is in the queue while its bit is set. Cells of the dead are skipped
 * here and taken back when the dead are buried (client_slot.c).
 */
#include "shm.h"

static void scan_cell(struct shm_queue_scan *r, unsigned i, uint32_t owner,
                      uint64_t ticket, uint64_t mine)
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

static void scan_once(struct shm *s, unsigned index, uint32_t except,
                      uint64_t mine, bool living, struct shm_queue_scan *r)
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
        /* If it has this name still, that was the owner of this wait and not of
         * the cell's next (cell_take.c). */
        if (!owner || atomic_load(&f->cell[n].name) != index)
            continue;
        ticket = atomic_load(&f->cell[n].ticket);
        if (ticket && owner != except && !(shared && shm_has(f, word, n)) &&
            (!living || hf__shm_alive(s, owner)))
            scan_cell(r, n, owner, ticket, mine);
    }
}

static bool is_dead(struct shm *s, unsigned cell)
{
    return cell != SHM_NO_CELL &&
           !hf__shm_alive(s, atomic_load(&s->file->cell[cell].owner));
}

/*
 * The queue as it is, of any kind, without the cells of `except`. Those it
 * finds are alive; to look at the life of all is left for when one of them is
 * not. What is read here is only believed if the word has not changed in
 * between, or if a wrong answer does no harm.
 */
void hf__shm_queue_scan(struct shm *s, unsigned index, uint32_t except,
                        uint64_t mine, struct shm_queue_scan *r)
{
    scan_once(s, index, except, mine, false, r);
    if (is_dead(s, r->first) || is_dead(s, r->before) || is_dead(s, r->behind))
        scan_once(s, index, except, mine, true, r);
}

hf__time hf__shm_mutex_lease_end(struct shm_entry *e, uint64_t word)
{
    uint64_t lease = atomic_load(&e->lease);

    if (!(word & SHM_LEASED) || (lease ^ word >> 40) & 0xffffff)
        return HF__NEVER;
    return (hf__time)(lease >> 24) * HF__MS;
}

/*
 * Writes the lease of a grant, then says so in the word. False: the grant is
 * over. A lease that is there already is only replaced by its own holder
 * (`mine`): who passed the lock on may come late with an earlier end.
 */
bool hf__shm_mutex_lease_write(struct shm *s, unsigned index, uint64_t word,
                               hf__time until, bool mine)
{
    struct shm_entry *e = &s->file->entry[index];
    uint64_t new = shm_lease(shm_to_ms(until), word);
    uint64_t old = atomic_load(&e->lease), w;
    struct shm_retry retry = {.of = e};
    struct shm_queue_scan r;

    do {
        w = atomic_load(&e->word);
        if (!shm_is_grant(w, word) || !hf__shm_retry(s, &retry))
            return false;
        if (!((old ^ new) & 0xffffff)) { /* there is one, or was long ago */
            if (!mine)
                return true;
            if ((w & SHM_LEASED) && old > new)
                new = old; /* never shorter than its holder thinks */
        }
        SHM_POINT();
    } while (!atomic_compare_exchange_strong(&e->lease, &old, new));
    SHM_POINT();
    w = atomic_load(&e->word);
    do {
        if (!shm_is_grant(w, word) || !hf__shm_retry(s, &retry))
            return false;
        SHM_POINT();
    } while (!atomic_compare_exchange_strong(&e->word, &w,
                                             shm_stirred(w) | SHM_LEASED));
    SHM_POINT();
    if (mine && (w & SHM_WAITERS)) { /* it sleeps without knowing the end */
        hf__shm_queue_scan(s, index, s->me, 0, &r);
        if (r.first != SHM_NO_CELL)
            hf__shm_ring_cell(s, r.first);
    }
    return true;
}

/* If it has not come so far as to ring the one behind it, and dies now, nobody
 * would notice; and if it has a lease now, nobody knows when that ends. So the
 * one behind is rung, too. */
static void ring_first(struct shm *s, unsigned index,
                       const struct shm_queue_scan *r, bool is_known)
{
    struct shm_queue_scan rest;

    hf__shm_ring_cell(s, r->first);
    if (r->len < 2 || is_known)
        return;
    SHM_POINT();
    hf__shm_queue_scan(s, index, r->first_owner, r->first_ticket, &rest);
    if (rest.behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, rest.behind);
}

bool hf__shm_mutex_pass(struct shm *s, unsigned index, uint64_t word)
{
    struct shm_entry *e = &s->file->entry[index];
    bool fair = atomic_load(&e->kind) & 256;
    uint32_t owner = shm_owner(word);
    uint64_t new;
    uint32_t lease_ms;
    struct shm_cell *c;
    struct shm_queue_scan r;
    bool announced;

    hf__shm_queue_scan(s, index, owner, 0, &r);
    /* What the first, if there is one, wants, and how far it has come: after
     * the swap that grants, the cell may be somebody else's. If it becomes that
     * before, whoever left has stirred, and the swap fails. */
    c = &s->file->cell[r.first % SHM_CELLS];
    lease_ms = fair ? atomic_load(&c->lease_ms) : 0; /* else not granted here */
    announced = atomic_load(&c->announced);
    if (r.first == SHM_NO_CELL)
        new = word & ~(SHM_OWNER_MASK | SHM_FLAGS);
    else if (fair)
        new = ((word & ~(SHM_OWNER_MASK | SHM_FLAGS)) + SHM_COUNT_ONE) |
              r.first_owner | (r.len > 1 ? SHM_WAITERS : 0);
    else
        new =
            (word & ~(SHM_OWNER_MASK | SHM_LEASED)) | SHM_WAITERS | SHM_WAKING;
    SHM_POINT();
    if (!atomic_compare_exchange_strong(&e->word, &word, new))
        return false;
    SHM_POINT();
    if (r.first == SHM_NO_CELL)
        return true;
    if (lease_ms)
        hf__shm_mutex_lease_write(s, index, new,
                                  s->core->now() + lease_ms * HF__MS, false);
    /* Somebody is on the way: the holder, who lets go often, need not ring.
     * Others who pass it on do. */
    if (fair || owner != s->me || !(word & SHM_WAKING))
        ring_first(s, index, &r, announced && !lease_ms);
    return true;
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

int hf__shm_enqueue(struct shm *s, struct shm_lock *l, struct hf__req *req)
{
    int n = hf__shm_wait_make(s, l, req->remote);
    struct shm_cell *c;

    if (!n)
        n = hf__shm_cell_take(s);
    if (n < 0)
        return n;
    SHM_POINT();
    c = &s->file->cell[n];
    shm_label_put(c->label, req->remote->label);
    hf__shm_wait_begin(s, l, (unsigned)n, req);
    atomic_store(&c->ticket, atomic_fetch_add(&l->entry->next_ticket, 1) + 1);
    SHM_POINT();
    /* Last: who has read the map when the cell was in it for another believes
     * the rest of it if it has this name. */
    atomic_store(&c->name, l->index);
    SHM_POINT();
    atomic_fetch_or(&l->entry->cells[n / 64], 1ULL << n % 64);
    SHM_POINT();
    return 0;
}

/* Out of the queue, with the lock: the word is in our name, so nobody decides
 * by our cell any more, and nothing has to be stirred. */
void hf__shm_dequeue(struct shm *s, struct shm_lock *l)
{
    unsigned n = hf__shm_wait_end(s, l);

    SHM_POINT();
    atomic_fetch_and(&l->entry->cells[n / 64], ~(1ULL << n % 64));
    SHM_POINT();
    hf__shm_unwatch(s, &s->file->cell[n], 0);
    hf__shm_cell_free(&s->file->cell[n]);
    SHM_POINT();
}

int hf__shm_leave_word(struct shm *s, struct shm_lock *l)
{
    struct shm_entry *e = l->entry;
    struct shm_retry retry = {.of = e};

    l->state = SHM_IDLE;
    do {
        uint64_t w = atomic_load(&e->word);

        SHM_POINT();
        /* It was given to us after all; or we were on the way to take it. */
        if (shm_owner(w) == s->me || (!shm_owner(w) && (w & SHM_WAITERS))) {
            if (hf__shm_mutex_pass(s, l->index, w))
                return HF__DONE;
        } else if (atomic_compare_exchange_strong(
                       &e->word, &w, shm_stirred(w) & ~SHM_WAKING)) {
            return HF__DONE;
        }
    } while (hf__shm_retry(s, &retry));
    l->state = SHM_LEAVING;
    return hf__shm_retry_refuse(s);
}

/* Out of the queue, without it. */
int hf__shm_leave(struct shm *s, struct shm_lock *l)
{
    struct shm_cell *c;
    struct shm_queue_scan r;
    unsigned n;
    int rc;

    hf__shm_pass_on_death(s, atomic_load(&l->wait));
    n = hf__shm_wait_end(s, l);
    c = &s->file->cell[n];
    SHM_POINT();
    atomic_fetch_and(&l->entry->cells[n / 64], ~(1ULL << n % 64));
    rc = hf__shm_leave_word(s, l);
    SHM_POINT();
    hf__shm_queue_scan(s, l->index, 0, atomic_load(&c->ticket), &r);
    if (r.behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, r.behind);
    hf__shm_unwatch(s, c, 0);
    hf__shm_wake_cell(s, n);
    hf__shm_cell_free(c);
    return rc;
}
