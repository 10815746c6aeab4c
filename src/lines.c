#include "lines.h"

static void take_out(struct hf__lines *s, struct hf__line *n)
{
    *(n->prev ? &n->prev->next : &s->head) = n->next;
    *(n->next ? &n->next->prev : &s->tail) = n->prev;
    n->prev = n->next = NULL;
}

void hf__lines_add(struct hf__lines *s, struct hf__line *n)
{
    n->prev = NULL;
    n->next = s->head;
    *(s->head ? &s->head->prev : &s->tail) = n;
    s->head = n;
}

static void put_at_end(struct hf__lines *s, struct hf__line *n)
{
    n->next = NULL;
    n->prev = s->tail;
    *(s->tail ? &s->tail->next : &s->head) = n;
    s->tail = n;
}

void hf__lines_init(struct hf__lines *s, enum hf_kind kind,
                    struct hf__line *first)
{
    *s = (struct hf__lines){.first = first, .kind = (uint8_t)kind};
    hf__lines_add(s, first);
}

struct hf__line *hf__lines_all_but_first(struct hf__lines *s)
{
    struct hf__line *others;

    take_out(s, s->first);
    others = s->head;
    s->head = s->tail = s->first;
    return others;
}

void hf__lines_rest(struct hf__lines *s, struct hf__line *n)
{
    if (n->gate->owner || n->gate->head || n == s->tail)
        return;
    take_out(s, n);
    put_at_end(s, n);
}

static bool is_for(const struct hf__line *n, enum hf_mode mode)
{
    return n->gate->shared == (mode == HF_READ);
}

void hf__lines_use(struct hf__lines *s, struct hf__line *n)
{
    if (n == s->head)
        return;
    take_out(s, n);
    hf__lines_add(s, n);
}

static struct hf__line *use(struct hf__lines *s, struct hf__line *n)
{
    if (n)
        hf__lines_use(s, n);
    return n;
}

struct hf__line *hf__lines_quiet(const struct hf__lines *s, enum hf_mode mode)
{
    struct hf__line *found = NULL;

    if (s->kind == HF_SEMAPHORE)
        return s->tail;
    if (s->kind != HF_RWLOCK)
        return NULL;
    for (struct hf__line *n = s->head; n; n = n->next) {
        if (!hf__gate_unused(n->gate))
            return NULL;
        if (is_for(n, mode))
            found = n;
    }
    return found;
}

/* Those that are not in use are at the end; the last few may be letting go. */
struct hf__line *hf__lines_unused(struct hf__lines *s, enum hf_mode mode)
{
    struct hf__line *n = s->tail;

    while (n && !(is_for(n, mode) && hf__gate_unused(n->gate)))
        n = n->prev;
    return use(s, n);
}

/* A server that does not answer is not asked through ever more lines: whoever
 * comes waits for one that is not let go yet, and fails with it. */
static struct hf__line *unused_or_stuck(struct hf__lines *s, enum hf_mode mode)
{
    struct hf__line *n = hf__lines_unused(s, mode);

    if (n)
        return n;
    n = s->tail;
    while (n && !(is_for(n, mode) && hf__gate_stuck(n->gate)))
        n = n->prev;
    return use(s, n);
}

static struct hf__line *joinable(const struct hf__lines *s,
                                 const struct hf__waiter *w, enum hf_mode mode,
                                 hf__time now)
{
    for (struct hf__line *n = s->head; n; n = n->next)
        if (is_for(n, mode) && hf__gate_joinable(n->gate, w, now))
            return n;
    return NULL;
}

static struct hf__line *of_reader(const struct hf__lines *s, uint64_t owner)
{
    for (struct hf__line *n = s->head; n; n = n->next)
        if (n->gate->shared && hf__gate_knows(n->gate, owner))
            return n;
    return NULL;
}

static int for_reading(struct hf__lines *s, const struct hf__waiter *w,
                       hf__time now, struct hf__line **out)
{
    *out = s->first;
    if (hf__gate_knows(s->first->gate, w->owner))
        return 0; /* a read within a write is one more of the same */
    *out = of_reader(s, w->owner);
    if (!*out && !s->first->gate->head) /* else a writer here is before us */
        *out = joinable(s, w, HF_READ, now);
    if (!*out)
        *out = unused_or_stuck(s, HF_READ);
    return 0;
}

static int for_writing(struct hf__lines *s, const struct hf__waiter *w,
                       hf__time now, struct hf__line **out)
{
    struct hf__line *n = of_reader(s, w->owner);

    *out = n ? n : s->first;
    if (!n)
        return 0;
    return hf__gate_check(n->gate, w->owner, now) ? HF_ELOST : HF_ENOTSUP;
}

int hf__lines_for(struct hf__lines *s, const struct hf__waiter *w,
                  enum hf_mode mode, hf__time now, struct hf__line **out)
{
    *out = NULL;
    if (s->kind == HF_RWLOCK)
        return mode == HF_READ ? for_reading(s, w, now, out)
                               : for_writing(s, w, now, out);
    if (s->kind == HF_LATCH)
        *out = joinable(s, w, mode, now);
    if (!*out)
        *out = unused_or_stuck(s, mode);
    return 0;
}

struct hf__line *hf__lines_held(const struct hf__lines *s, uint64_t owner)
{
    struct hf__line *lost = s->first;

    if (s->kind == HF_RWLOCK && hf__gate_knows(s->first->gate, owner))
        return s->first;
    for (struct hf__line *n = s->head; n; n = n->next) {
        if (!hf__gate_knows(n->gate, owner))
            continue;
        if (n->gate->owner)
            return n;
        lost = n;
    }
    return lost;
}
