/*
 * The lines of a name (line_set.h): made, taken, rested, freed, with the
 * entries of those who read. name->mu is held.
 */
#include "core/client.h"

static struct hf__name *name_of(struct hf__line *line)
{
    return hf__container(line->gate, struct hf__name, gate);
}

struct hf__name *hf__line_after(const struct hf__name *n)
{
    struct hf__line *next = n->kin ? n->kin->line.next : NULL;

    return next ? name_of(next) : NULL;
}

struct hf__name *hf__line_newest(struct hf__name *first)
{
    struct hf__line *newest;

    if (!first->kin)
        return first;
    newest = first->kin->lines.at[HF__TAKEN];
    return newest ? name_of(newest) : NULL;
}

struct hf__name *hf__line_all_but(struct hf__name *first)
{
    struct hf__line *line = hf__lines_all_but_first(&first->kin->lines);

    return line ? name_of(line) : NULL;
}

void hf__line_rest(struct hf__name *n)
{
    struct hf__kin *f = hf__name_first(n)->kin;
    struct hf__reader *r;

    if (!f)
        return;
    while (n->gate.shared && (r = n->gate.left)) {
        n->gate.left = r->next;
        r->next = f->spare;
        f->spare = r;
    }
    hf__lines_rest(&f->lines, &n->kin->line);
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
    free_readers(n->client, n->kin->spare);
}

/* That line, or if it is NULL one more, in use. */
static int use(struct hf__name *first, struct hf__line *line, enum hf_mode mode,
               struct hf__name **out, hf_error *err)
{
    int rc = line ? 0 : hf__name_line(first, mode, out, err);

    if (line)
        *out = name_of(line);
    else if (!rc)
        hf__lines_add(&first->kin->lines, &(*out)->kin->line);
    return rc;
}

/* There is an entry for one who reads. */
static int reserve_entry(struct hf__name *first, hf_error *err)
{
    struct hf__kin *k = first->kin;

    if (!k->spare)
        k->spare = hf__alloc(first->client, sizeof(*k->spare));
    return k->spare ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

/* Entries keep their thread (a reference) when they are not in use: it is
 * likely to be the next one, too. */
static struct hf__reader *take_entry(struct hf__name *first,
                                     struct hf__thread *thread)
{
    struct hf__reader *r = first->kin->spare;

    first->kin->spare = r->next;
    if (r->thread == thread)
        return r;
    hf__thread_unref(r->thread);
    r->thread = thread;
    if (thread)
        hf__thread_ref(thread);
    return r;
}

struct hf__name *hf__line_quiet(struct hf__name *first, struct hf__waiter *w,
                                enum hf_mode mode)
{
    struct hf__line *line = hf__lines_quiet(&first->kin->lines, mode);

    if (!line || (line->gate->shared && !first->kin->spare))
        return NULL;
    if (line->gate->shared)
        w->reader = take_entry(first, w->thread);
    return name_of(line);
}

void hf__line_went(struct hf__name *n, struct hf__waiter *w, bool had)
{
    struct hf__kin *f = n->kin->first->kin;

    if (had)
        hf__lines_take(&f->lines, &n->kin->line);
    if (w->reader) {
        w->reader->next = f->spare;
        f->spare = w->reader;
        w->reader = NULL;
    }
}

static int refused(int rc, hf_error *err)
{
    return hf__fail(err, rc,
                    "the caller reads: a read hold cannot become a write hold, "
                    "because two that try would wait for each other for ever");
}

/* Threads that have exited release nothing: what they lost is forgotten, so
 * that their lines are free for others. True: something was. */
static bool forget_the_gone(struct hf__name *first)
{
    struct hf__name *n, *next;
    bool any = false;

    for (n = hf__line_newest(first); n; n = next) {
        next = hf__line_after(n);
        if (!hf__name_forget_the_gone(n))
            continue;
        hf__line_rest(n);
        any = true;
    }
    return any;
}

int hf__line_for(const hf_lock *lock, struct hf__waiter *w, enum hf_mode mode,
                 hf__time now, struct hf__name **out, hf_error *err)
{
    struct hf__name *first = lock->name;
    struct hf__line *line;
    int rc = 0;

    if (lock->acquiring)
        return hf__fail(err, HF_EDEADLK,
                        "another acquire through this handle, which is one "
                        "owner, is under way");
    *out = first;
    if (!first->kin)
        return 0;
    if (mode == HF_READ)
        rc = reserve_entry(first, err);
    if (rc)
        return rc;
    rc = hf__lines_for(&first->kin->lines, w, mode, now, &line);
    if (rc == HF_ELOST) {
        hf__name_run(name_of(line), now); /* that may be news */
        return hf__fail_unreleased(name_of(line), w->owner, err);
    }
    if (rc)
        return refused(rc, err);
    if (!line && forget_the_gone(first))
        line = hf__lines_unused(&first->kin->lines, mode);
    rc = use(first, line, mode, out, err);
    if (!rc && (*out)->gate.shared)
        w->reader = take_entry(first, w->thread);
    /* Who joins others that wait for a latch has to be known to the server: it
     * may be 0 and be set again before they look. */
    if (!rc && (*out)->gate.latch)
        hf__lease_bell(&(*out)->gate.lease, now);
    return rc;
}

int hf__line_downgrade(struct hf__name *first, struct hf__thread *thread,
                       hf__time now, struct hf__name **into, hf_error *err)
{
    int rc = reserve_entry(first, err);
    struct hf__line *line;
    struct hf__reader *r;

    if (rc)
        return rc;
    line = hf__lines_unused(&first->kin->lines, HF_READ);
    rc = use(first, line, HF_READ, into, err);
    if (rc)
        return rc;
    /* It may never have asked for anything, and will have to let go. */
    if (!first->client->direct && !hf__name_exchange(*into)) {
        hf__line_rest(*into);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    r = take_entry(first, thread);
    hf__gate_downgrade(&first->gate, &(*into)->gate, r, now);
    r->thread = thread;
    (*into)->orphaned = false;
    hf__tally_hold(first);
    hf__tally_hold(*into);
    if (first->watchers)
        hf__name_arm(*into, false);
    return 0;
}

struct hf__name *hf__line_held(struct hf__name *first, uint64_t owner)
{
    return first->kin ? name_of(hf__lines_held(&first->kin->lines, owner))
                      : first;
}

/* The hold of a line cannot be used: it may be lost since just now. */
static int unusable(struct hf__name *line, uint64_t owner, int rc, hf__time now,
                    hf_error *err)
{
    HF__UNCANCELLED;

    hf__name_run(line, now);
    return hf__fail_hold(line, owner, rc, err);
}

int hf__line_check(const hf_lock *lock, struct hf__name **line, hf_error *err)
{
    uint64_t owner = hf__owner_of(lock, NULL);
    hf__time now = hf__now();
    int rc = HF_ENOTOWNER; /* out of memory: it has never acquired */

    *line = hf__line_held(lock->name, owner);
    if (owner)
        rc = hf__gate_check(&(*line)->gate, owner, now);
    return rc ? unusable(*line, owner, rc, now, err) : 0;
}
