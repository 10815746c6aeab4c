#include "policy/line_set.h"
#include "base/list.h"

static void line_set_put(struct hf__line_set *s, struct hf__line_entry *n,
                         enum hf__place place)
{
    n->place = (uint8_t)place;
    hf__list_add(s->at[place], n);
}

static void line_set_take_out(struct hf__line_set *s, struct hf__line_entry *n)
{
    hf__list_remove(s->at[n->place], n);
    n->prev = n->next = NULL;
    n->place = HF__PLACES;
}

static void line_set_move(struct hf__line_set *s, struct hf__line_entry *n,
                          enum hf__place place)
{
    line_set_take_out(s, n);
    line_set_put(s, n, place);
}

void hf__line_set_add(struct hf__line_set *s, struct hf__line_entry *n)
{
    hf__ends_verified(line_set, s);

    line_set_put(s, n, HF__TAKEN);
}

void hf__line_set_init(struct hf__line_set *s, enum hf_kind kind,
                       struct hf__line_entry *first)
{
    *s = (struct hf__line_set){.first = first, .kind = (uint8_t)kind};
    line_set_put(s, first, HF__RESTING);
}

struct hf__line_entry *hf__line_set_all_but_first(struct hf__line_set *s)
{
    struct hf__line_entry *others = NULL, *n;

    for (int place = 0; place < HF__PLACES; place++)
        while ((n = s->at[place])) {
            line_set_take_out(s, n);
            if (n == s->first)
                continue;
            n->next = others;
            others = n;
        }
    line_set_put(s, s->first, HF__TAKEN);
    hf__line_set_rest(s, s->first);
    return others;
}

static enum hf__place line_set_resting(enum hf_mode mode)
{
    return mode == HF_READ ? HF__READING : HF__RESTING;
}

static enum hf__place line_set_place_of(const struct hf__queue *g)
{
    if (hf__queue_unused(g))
        return line_set_resting(g->shared ? HF_READ : HF_WRITE);
    return hf__queue_leaving(g) ? HF__LEAVING : HF__TAKEN;
}

void hf__line_set_rest(struct hf__line_set *s, struct hf__line_entry *n)
{
    hf__ends_verified(line_set, s);
    enum hf__place place = line_set_place_of(n->queue);

    if (n->place != place && n->place != HF__PLACES)
        line_set_move(s, n, place);
}

void hf__line_set_take(struct hf__line_set *s, struct hf__line_entry *n)
{
    hf__ends_verified(line_set, s);

    if (n->place != HF__TAKEN)
        line_set_move(s, n, HF__TAKEN);
}

void hf__line_set_granted(struct hf__line_set *s, struct hf__line_entry *n)
{
    hf__ends_verified(line_set, s);

    if (n->place == HF__TAKEN && s->at[HF__TAKEN] != n)
        line_set_move(s, n, HF__TAKEN);
}

static struct hf__line_entry *line_set_take(struct hf__line_set *s,
                                            struct hf__line_entry *n)
{
    if (n)
        hf__line_set_take(s, n);
    return n;
}

struct hf__line_entry *hf__line_set_quiet(const struct hf__line_set *s,
                                          enum hf_mode mode)
{
    if (s->kind == HF_SEMAPHORE ||
        (s->kind == HF_RWLOCK && !s->at[HF__TAKEN] && !s->at[HF__LEAVING]))
        return s->at[line_set_resting(mode)];
    return NULL;
}

struct hf__line_entry *hf__line_set_unused(struct hf__line_set *s,
                                           enum hf_mode mode)
{
    return line_set_take(s, s->at[line_set_resting(mode)]);
}

static bool line_set_is_for(const struct hf__line_entry *n, enum hf_mode mode)
{
    return n->queue->shared == (mode == HF_READ);
}

/* Takes an unused line. If there is none, takes a line whose let_go is unsure,
 * so that no lines are added while the server does not answer. In the second
 * case the waiter fails if that let_go fails. */
static struct hf__line_entry *line_set_unused_or_stuck(struct hf__line_set *s,
                                                       enum hf_mode mode)
{
    struct hf__line_entry *n = hf__line_set_unused(s, mode);

    if (n)
        return n;
    n = s->at[HF__LEAVING];
    while (n && !(line_set_is_for(n, mode) && hf__queue_stuck(n->queue)))
        n = n->next;
    return line_set_take(s, n);
}

static struct hf__line_entry *line_set_joinable(const struct hf__line_set *s,
                                                const struct hf__waiter *w,
                                                enum hf_mode mode, hf__time now)
{
    for (struct hf__line_entry *n = s->at[HF__TAKEN]; n; n = n->next)
        if (line_set_is_for(n, mode) && hf__queue_joinable(n->queue, w, now))
            return n;
    return NULL;
}

static struct hf__line_entry *line_set_of_reader(const struct hf__line_set *s,
                                                 uint64_t owner)
{
    for (struct hf__line_entry *n = s->at[HF__TAKEN]; n; n = n->next)
        if (n->queue->shared && hf__queue_knows(n->queue, owner))
            return n;
    return NULL;
}

static int line_set_for_reading(struct hf__line_set *s,
                                const struct hf__waiter *w, hf__time now,
                                struct hf__line_entry **out)
{
    *out = s->first;
    if (hf__queue_knows(s->first->queue, w->owner))
        return 0; /* a read within a write is one more acquire of the write hold
                   */
    *out = line_set_of_reader(s, w->owner);
    if (!*out && !s->first->queue->head) /* no local writer is ahead */
        *out = line_set_joinable(s, w, HF_READ, now);
    if (!*out)
        *out = line_set_unused_or_stuck(s, HF_READ);
    return 0;
}

static int line_set_for_writing(struct hf__line_set *s,
                                const struct hf__waiter *w, hf__time now,
                                struct hf__line_entry **out)
{
    struct hf__line_entry *n = line_set_of_reader(s, w->owner);

    *out = n ? n : line_set_take(s, s->first);
    if (!n)
        return 0;
    return hf__queue_check(n->queue, w->owner, now) ? HF_ELOST : HF_ENOTSUP;
}

int hf__line_set_for(struct hf__line_set *s, const struct hf__waiter *w,
                     enum hf_mode mode, hf__time now,
                     struct hf__line_entry **out)
{
    hf__ends_verified(line_set, s);

    *out = NULL;
    if (s->kind == HF_RWLOCK)
        return mode == HF_READ ? line_set_for_reading(s, w, now, out)
                               : line_set_for_writing(s, w, now, out);
    if (s->kind == HF_LATCH)
        *out = line_set_joinable(s, w, mode, now);
    if (!*out)
        *out = line_set_unused_or_stuck(s, mode);
    return 0;
}

struct hf__line_entry *hf__line_set_held(const struct hf__line_set *s,
                                         uint64_t owner)
{
    struct hf__line_entry *lost = s->first;

    if (s->kind == HF_RWLOCK && hf__queue_knows(s->first->queue, owner))
        return s->first;
    for (struct hf__line_entry *n = s->at[HF__TAKEN]; n; n = n->next) {
        if (!hf__queue_knows(n->queue, owner))
            continue;
        if (n->queue->owner)
            return n;
        lost = n;
    }
    return lost;
}

#ifdef HF__ASSERT

void hf__line_set_verify(const struct hf__line_set *s)
{
    bool has_first = false;

    for (int place = 0; place < HF__PLACES; place++) {
        const struct hf__line_entry *prev = NULL;

        for (struct hf__line_entry *n = s->at[place]; n; n = n->next) {
            hf__assert(n->place == place && n->prev == prev);
            has_first = has_first || n == s->first;
            prev = n;
        }
    }
    hf__assert(has_first);
}

#endif
