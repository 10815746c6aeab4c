#include "policy/line_set.h"
#include "base/list.h"

static void put(struct hf__lines *s, struct hf__line *n, enum hf__place place)
{
    n->place = (uint8_t)place;
    hf__list_add(s->at[place], n);
}

static void take_out(struct hf__lines *s, struct hf__line *n)
{
    hf__list_remove(s->at[n->place], n);
    n->prev = n->next = NULL;
    n->place = HF__PLACES;
}

void hf__lines_add(struct hf__lines *s, struct hf__line *n)
{
    put(s, n, HF__TAKEN);
}

void hf__lines_init(struct hf__lines *s, enum hf_kind kind,
                    struct hf__line *first)
{
    *s = (struct hf__lines){.first = first, .kind = (uint8_t)kind};
    put(s, first, HF__RESTING);
}

struct hf__line *hf__lines_all_but_first(struct hf__lines *s)
{
    struct hf__line *others = NULL, *n;

    for (int place = 0; place < HF__PLACES; place++)
        while ((n = s->at[place])) {
            take_out(s, n);
            if (n == s->first)
                continue;
            n->next = others;
            others = n;
        }
    put(s, s->first, HF__TAKEN);
    hf__lines_rest(s, s->first);
    return others;
}

static enum hf__place resting(enum hf_mode mode)
{
    return mode == HF_READ ? HF__READING : HF__RESTING;
}

static enum hf__place place_of(const struct hf__gate *g)
{
    if (hf__gate_unused(g))
        return resting(g->shared ? HF_READ : HF_WRITE);
    return hf__gate_leaving(g) ? HF__LEAVING : HF__TAKEN;
}

void hf__lines_rest(struct hf__lines *s, struct hf__line *n)
{
    enum hf__place place = place_of(n->gate);

    if (n->place == place || n->place == HF__PLACES)
        return;
    take_out(s, n);
    put(s, n, place);
}

void hf__lines_take(struct hf__lines *s, struct hf__line *n)
{
    if (n->place == HF__TAKEN)
        return;
    take_out(s, n);
    put(s, n, HF__TAKEN);
}

void hf__lines_granted(struct hf__lines *s, struct hf__line *n)
{
    if (n->place != HF__TAKEN || s->at[HF__TAKEN] == n)
        return;
    take_out(s, n);
    put(s, n, HF__TAKEN);
}

static struct hf__line *take(struct hf__lines *s, struct hf__line *n)
{
    if (n)
        hf__lines_take(s, n);
    return n;
}

struct hf__line *hf__lines_quiet(const struct hf__lines *s, enum hf_mode mode)
{
    if (s->kind == HF_SEMAPHORE ||
        (s->kind == HF_RWLOCK && !s->at[HF__TAKEN] && !s->at[HF__LEAVING]))
        return s->at[resting(mode)];
    return NULL;
}

struct hf__line *hf__lines_unused(struct hf__lines *s, enum hf_mode mode)
{
    return take(s, s->at[resting(mode)]);
}

static bool is_for(const struct hf__line *n, enum hf_mode mode)
{
    return n->gate->shared == (mode == HF_READ);
}

/* A server that does not answer is not asked through ever more lines: whoever
 * comes waits for one that is not let go yet, and fails with it. */
static struct hf__line *unused_or_stuck(struct hf__lines *s, enum hf_mode mode)
{
    struct hf__line *n = hf__lines_unused(s, mode);

    if (n)
        return n;
    n = s->at[HF__LEAVING];
    while (n && !(is_for(n, mode) && hf__gate_stuck(n->gate)))
        n = n->next;
    return take(s, n);
}

static struct hf__line *joinable(const struct hf__lines *s,
                                 const struct hf__waiter *w, enum hf_mode mode,
                                 hf__time now)
{
    for (struct hf__line *n = s->at[HF__TAKEN]; n; n = n->next)
        if (is_for(n, mode) && hf__gate_joinable(n->gate, w, now))
            return n;
    return NULL;
}

static struct hf__line *of_reader(const struct hf__lines *s, uint64_t owner)
{
    for (struct hf__line *n = s->at[HF__TAKEN]; n; n = n->next)
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

    *out = n ? n : take(s, s->first);
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
    for (struct hf__line *n = s->at[HF__TAKEN]; n; n = n->next) {
        if (!hf__gate_knows(n->gate, owner))
            continue;
        if (n->gate->owner)
            return n;
        lost = n;
    }
    return lost;
}
