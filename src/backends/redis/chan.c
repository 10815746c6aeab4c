/*
 * The table of names that somebody of ours waits for, or did a moment ago, by
 * name, kind and (of a mutex) fairness; and the list of those that linger, the
 * oldest first.
 */
#include "redis.h"

#include <string.h>

static uint32_t hash_of(const char *name, size_t len, enum hf_kind kind,
                        bool fair)
{
    uint32_t h = 2166136261u ^ (uint32_t)kind << 1 ^ fair;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h ^ h >> 15;
}

struct rd_chan *hf__rd_chan_find(const struct redis *r, const char *name,
                                 size_t len, enum hf_kind kind, bool fair)
{
    uint32_t hash = hash_of(name, len, kind, fair);
    struct rd_chan *c =
        r->chans.cap ? r->chans.buckets[hash & (r->chans.cap - 1)] : NULL;

    while (c && (c->hash != hash || c->kind != kind || c->fair != fair ||
                 c->name_len != len || memcmp(c->name, name, len) != 0))
        c = c->next_in_bucket;
    return c;
}

static int grow(struct redis *r)
{
    struct rd_chans *t = &r->chans;
    size_t cap = t->cap ? t->cap * 2 : 16;
    struct rd_chan **buckets, *c, *next;

    if (t->len < t->cap)
        return 0;
    buckets = r->core->alloc(r->client, cap * sizeof(*buckets));
    if (!buckets)
        return HF_ENOMEM;
    for (size_t i = 0; i < t->cap; i++)
        for (c = t->buckets[i]; c; c = next) {
            next = c->next_in_bucket;
            c->next_in_bucket = buckets[c->hash & (cap - 1)];
            buckets[c->hash & (cap - 1)] = c;
        }
    r->core->free(r->client, t->buckets);
    t->buckets = buckets;
    t->cap = cap;
    return 0;
}

struct rd_chan *hf__rd_chan_add(struct redis *r, const struct hf__remote *m)
{
    struct rd_chans *t = &r->chans;
    struct rd_chan *c;

    if (grow(r))
        return NULL;
    c = r->core->alloc(r->client, sizeof(*c) + m->name_len);
    if (!c)
        return NULL;
    memcpy(c->name, m->name, m->name_len);
    c->name_len = m->name_len;
    c->kind = m->kind;
    c->fair = m->fair && m->kind == HF_MUTEX;
    c->hash = hash_of(m->name, m->name_len, m->kind, c->fair);
    c->next_in_bucket = t->buckets[c->hash & (t->cap - 1)];
    t->buckets[c->hash & (t->cap - 1)] = c;
    t->len++;
    return c;
}

void hf__rd_chan_linger(struct redis *r, struct rd_chan *c, hf__time until)
{
    c->until = until;
    c->next = NULL;
    c->prev = r->chans.newest;
    if (c->prev)
        c->prev->next = c;
    else
        r->chans.oldest = c;
    r->chans.newest = c;
}

void hf__rd_chan_unlinger(struct redis *r, struct rd_chan *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        r->chans.oldest = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        r->chans.newest = c->prev;
    c->next = c->prev = NULL;
}

void hf__rd_chan_link(struct rd_chan *c, struct rd_link *link)
{
    link->chan = c;
    link->next = c->links;
    c->links = link;
}

void hf__rd_chan_unlink(struct rd_link *link)
{
    struct rd_link **at;

    if (!link->chan)
        return;
    for (at = &link->chan->links; *at != link; at = &(*at)->next)
        ;
    *at = link->next;
    link->next = NULL;
    link->chan = NULL;
}

/* It lingers, and nobody is subscribed by it any more. */
void hf__rd_chan_forget(struct redis *r, struct rd_chan *c)
{
    struct rd_chan **at = &r->chans.buckets[c->hash & (r->chans.cap - 1)];

    while (*at != c)
        at = &(*at)->next_in_bucket;
    *at = c->next_in_bucket;
    hf__rd_chan_unlinger(r, c);
    while (c->links)
        hf__rd_chan_unlink(c->links);
    r->chans.len--;
    r->core->free(r->client, c);
}
