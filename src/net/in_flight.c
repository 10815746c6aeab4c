#include "in_flight.h"

#include <string.h>

#define FIRST_CAP 16

void hf__sent_init(struct net_sents *s, const struct hf__core *core,
                   hf_client *client, size_t size)
{
    *s = (struct net_sents){.core = core, .client = client, .size = size};
}

void hf__sent_fini(struct net_sents *s)
{
    s->core->free(s->client, s->ring);
    s->ring = NULL;
    s->len = s->cap = 0;
}

void hf__sent_clear(struct net_sents *s)
{
    s->head += s->len;
    s->len = 0;
}

void *hf__sent_at(const struct net_sents *s, size_t i)
{
    return s->ring + ((s->head + i) & (s->cap - 1)) * s->size;
}

static int flight_grow(struct net_sents *s)
{
    size_t cap = s->cap ? s->cap * 2 : FIRST_CAP;
    char *ring;

    if (s->len < s->cap)
        return 0;
    ring = s->core->alloc(s->client, cap * s->size);
    if (!ring)
        return HF_ENOMEM;
    for (size_t i = 0; i < s->len; i++)
        memcpy(ring + ((s->head + i) & (cap - 1)) * s->size, hf__sent_at(s, i),
               s->size);
    s->core->free(s->client, s->ring);
    s->ring = ring;
    s->cap = cap;
    return 0;
}

void *hf__sent_add(struct net_sents *s, struct net_link *l)
{
    const struct net_out *o = &l->stream.out;
    struct net_sent *sent;

    if (flight_grow(s))
        return NULL;
    sent = hf__sent_at(s, s->len++);
    memset(sent, 0, s->size);
    sent->at = s->core->now();
    sent->start = l->stream.written + (o->len - o->from);
    hf__link_await(l, sent->at);
    return sent;
}

void *hf__sent_take(struct net_sents *s)
{
    void *first = hf__sent_at(s, 0);

    s->head++;
    s->len--;
    return first;
}

void hf__sent_untake(struct net_sents *s)
{
    s->head--;
    s->len++;
}

void *hf__sent_lost(struct net_sents *s, uint64_t written)
{
    const struct net_sent *first = s->len ? hf__sent_at(s, 0) : NULL;

    return first && first->start < written ? hf__sent_take(s) : NULL;
}

void *hf__sent_unsent(struct net_sents *s, uint64_t written)
{
    const struct net_sent *last = s->len ? hf__sent_at(s, s->len - 1) : NULL;

    if (!last || last->start < written)
        return NULL;
    return hf__sent_at(s, --s->len);
}
