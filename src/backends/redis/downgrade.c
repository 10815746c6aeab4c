/*
 * From write to read. The lines may be used for something else, or be gone, by
 * the time the question is sent, so that it carries a copy of the name. The
 * lease ends when it would have: one that is renewed is so at once.
 */
#include "redis.h"

#include <string.h>

struct rd_copy {
    struct rd_copy *next;
    const struct hf__query *query;
    char name[];
};

int hf__rd_downgrade_begin(struct redis *r, struct hf__query *q)
{
    size_t len = q->line->name_len;
    struct rd_copy *copy = r->core->alloc(r->client, sizeof(*copy) + len);

    if (!copy)
        return HF_ENOMEM;
    memcpy(copy->name, q->line->name, len);
    q->name = copy->name;
    q->name_len = len;
    copy->query = q;
    copy->next = r->copies;
    r->copies = copy;
    return 0;
}

void hf__rd_downgrade_end(struct redis *r, const struct hf__query *q)
{
    struct rd_copy **at = &r->copies, *copy;

    while (*at && (*at)->query != q)
        at = &(*at)->next;
    copy = *at;
    if (!copy)
        return;
    *at = copy->next;
    r->core->free(r->client, copy);
}

void hf__rd_downgrade_fini(struct redis *r)
{
    while (r->copies) {
        struct rd_copy *copy = r->copies;

        r->copies = copy->next;
        r->core->free(r->client, copy);
    }
}

int hf__rd_downgrade_encode(struct redis *r, struct hf__query *q)
{
    static const enum rd_key args[] = {RD_CHANNEL_RW, RD_MARK_RW, RD_KEY_BASE};
    struct net_out *o =
        hf__rd_begin(r, &q->req, RD_DOWNGRADE, q->name, q->name_len, 4,
                     3 * (RD_KEY_MAX + 16) + 128);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_owner(r, o, q->req.hold_id);
    for (size_t i = 0; i < 3; i++)
        hf__rd_put_key(o, args[i], q->name, q->name_len);
    return 0;
}
