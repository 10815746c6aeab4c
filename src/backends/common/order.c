#include "order.h"

#include <string.h>

bool hf__order_holds(struct hf__order *o, bool reads, bool lets_readers_in)
{
    bool holds = reads ? !o->writer : !o->any;

    o->any = true;
    o->writer = o->writer || !(reads || lets_readers_in);
    return holds;
}

bool hf__order_means(const struct hf__query *q, uint64_t token,
                     const char *owner)
{
    return (!q->token || q->token == token) &&
           (!q->owner[0] || strcmp(q->owner, owner) == 0);
}

bool hf__order_means_all(const struct hf__query *q)
{
    return !q->token && !q->owner[0];
}
