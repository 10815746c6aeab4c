/*
 * Which line a verb is about. A mutex has one. A read-write lock writes through
 * its first and reads through others, each with a read hold that local readers
 * share while it is young; a semaphore has a line for each hold; a latch has
 * few, whose waiters are let through together. Lines are made when none is
 * free, and kept for the next time until the last handle goes.
 */
#include "core.h"

static void take_out(struct hf__name *n)
{
    struct hf__kin *k = n->kin, *f = k->first->kin;

    *(k->prev ? &k->prev->kin->next : &f->head) = k->next;
    *(k->next ? &k->next->kin->prev : &f->tail) = k->prev;
    k->prev = k->next = NULL;
}

static void put_in_front(struct hf__name *n)
{
    struct hf__kin *k = n->kin, *f = k->first->kin;

    k->next = f->head;
    *(f->head ? &f->head->kin->prev : &f->tail) = n;
    f->head = n;
}

static void put_at_end(struct hf__name *n)
{
    struct hf__kin *k = n->kin, *f = k->first->kin;

    k->prev = f->tail;
    *(f->tail ? &f->tail->kin->next : &f->head) = n;
    f->tail = n;
}

struct hf__name *hf__line_all_but(struct hf__name *first)
{
    struct hf__name *lines;

    take_out(first);
    lines = first->kin->head;
    first->kin->head = first->kin->tail = first;
    return lines;
}

void hf__line_rest(struct hf__name *n)
{
    struct hf__kin *f = n->kin->first->kin;
    struct hf__reader *r;

    while (n->gate.shared && (r = n->gate.left)) {
        n->gate.left = r->next;
        hf__thread_unref(r->thread);
        r->next = f->spare;
        f->spare = r;
    }
    if (!n->gate.owner && !n->gate.head && n != f->tail) {
        take_out(n);
        put_at_end(n);
    }
}

static void free_readers(hf_client *c, struct hf__reader *r)
{
    struct hf__reader *next;

    for (; r; r = next) {
        next = r->next;
        hf__thread_unref(r->thread);
        hf__free(c, r);
    }
}

void hf__line_free(struct hf__name *n)
{
    if (n->gate.shared) {
        free_readers(n->client, n->gate.readers);
        free_readers(n->client, n->gate.left);
    }
    while (n->kin->spare) {
        struct hf__reader *r = n->kin->spare;

        n->kin->spare = r->next;
        hf__free(n->client, r);
    }
}

/* Those that are not in use are at the end; the last few may be letting go. */
static struct hf__name *find_unused(struct hf__name *first, enum hf_mode mode)
{
    struct hf__name *n = first->kin->tail;

    for (int i = 0; n && i < 4; i++, n = n->kin->prev)
        if (n->remote.mode == mode && hf__gate_unused(&n->gate))
            return n;
    return NULL;
}

static int unused(struct hf__name *first, enum hf_mode mode,
                  struct hf__name **out, hf_error *err)
{
    int rc = 0;

    *out = find_unused(first, mode);
    if (*out)
        take_out(*out);
    else
        rc = hf__name_line(first, mode, out, err);
    if (!rc)
        put_in_front(*out);
    return rc;
}

static struct hf__name *joinable(struct hf__name *first,
                                 const struct hf__waiter *w, enum hf_mode mode,
                                 hf__time now)
{
    for (struct hf__name *n = first->kin->head; n; n = n->kin->next)
        if (n->remote.mode == mode && hf__gate_joinable(&n->gate, w, now))
            return n;
    return NULL;
}

static struct hf__name *of_reader(struct hf__name *first, uint64_t owner)
{
    for (struct hf__name *n = first->kin->head; n; n = n->kin->next)
        if (n->gate.shared && hf__gate_knows(&n->gate, owner))
            return n;
    return NULL;
}

static int for_reading(struct hf__name *first, struct hf__waiter *w,
                       hf__time now, struct hf__name **out, hf_error *err)
{
    struct hf__kin *k = first->kin;

    if (hf__gate_knows(&first->gate, w->owner)) {
        *out = first; /* a read within a write is one more of the same */
        return 0;
    }
    if (!k->spare) {
        k->spare = hf__alloc(first->client, sizeof(*k->spare));
        if (!k->spare)
            return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    *out = of_reader(first, w->owner);
    if (!*out && !first->gate.head) /* else a writer here is before us */
        *out = joinable(first, w, HF_READ, now);
    if (!*out) {
        int rc = unused(first, HF_READ, out, err);

        if (rc)
            return rc;
    }
    w->reader = k->spare;
    k->spare = w->reader->next;
    return 0;
}

static int for_writing(struct hf__name *first, const struct hf__waiter *w,
                       hf__time now, struct hf__name **out, hf_error *err)
{
    struct hf__name *n = of_reader(first, w->owner);

    *out = first;
    if (!n)
        return 0;
    *out = n;
    if (hf__gate_check(&n->gate, w->owner, now))
        return HF_ELOST;
    return hf__fail(err, HF_ENOTSUP,
                    "the caller reads: a read hold cannot become a write hold, "
                    "because two that try would wait for each other for ever");
}

int hf__line_for(const hf_lock *lock, struct hf__waiter *w, enum hf_mode mode,
                 hf__time now, struct hf__name **out, hf_error *err)
{
    struct hf__name *first = lock->name;

    *out = first;
    switch (first->remote.kind) {
    case HF_RWLOCK:
        return mode == HF_READ ? for_reading(first, w, now, out, err)
                               : for_writing(first, w, now, out, err);
    case HF_LATCH:
        *out = joinable(first, w, mode, now);
        return *out ? 0 : unused(first, mode, out, err);
    case HF_SEMAPHORE:
        return unused(first, mode, out, err);
    default:
        return 0;
    }
}

int hf__line_downgrade(struct hf__name *first, struct hf__thread *thread,
                       hf__time now, struct hf__name **into, hf_error *err)
{
    struct hf__reader *r = hf__alloc(first->client, sizeof(*r));
    int rc = r ? unused(first, HF_READ, into, err)
               : hf__fail(err, HF_ENOMEM, "out of memory");

    if (rc) {
        hf__free(first->client, r);
        return rc;
    }
    hf__gate_downgrade(&first->gate, &(*into)->gate, r, now);
    r->thread = thread;
    if (thread)
        hf__thread_ref(thread);
    (*into)->orphaned = false;
    if (first->watchers)
        hf__name_arm(*into, false);
    return 0;
}

struct hf__name *hf__line_held(struct hf__name *first, uint64_t owner)
{
    struct hf__name *lost = first;

    if (!first->kin || hf__gate_knows(&first->gate, owner))
        return first;
    for (struct hf__name *n = first->kin->head; n; n = n->kin->next) {
        if (!hf__gate_knows(&n->gate, owner))
            continue;
        if (n->gate.owner)
            return n;
        lost = n;
    }
    return lost;
}
