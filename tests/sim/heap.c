/* The pending events as a binary heap, the next event first. */
#include "sim.h"

#include <stdlib.h>

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

/* Adds an event. An event that already has a sequence number was postponed: it
 * keeps its place among the events of the same time. */
void heap_push(struct heap *h, struct event e)
{
    size_t i;

    if (h->len == h->room) {
        h->room = h->room ? 2 * h->room : 256;
        h->event = realloc(h->event, h->room * sizeof(e));
        if (!h->event)
            abort();
    }
    if (!e.seq)
        e.seq = ++h->seq;
    for (i = h->len++; i && before(&e, &h->event[(i - 1) / 2]); i = (i - 1) / 2)
        h->event[i] = h->event[(i - 1) / 2];
    h->event[i] = e;
}

bool heap_pop(struct heap *h, struct event *out)
{
    struct event last;
    size_t i = 0, child;

    if (!h->len)
        return false;
    *out = h->event[0];
    last = h->event[--h->len];
    while ((child = 2 * i + 1) < h->len) {
        if (child + 1 < h->len &&
            before(&h->event[child + 1], &h->event[child]))
            child++;
        if (!before(&h->event[child], &last))
            break;
        h->event[i] = h->event[child];
        i = child;
    }
    if (h->len)
        h->event[i] = last;
    return true;
}
