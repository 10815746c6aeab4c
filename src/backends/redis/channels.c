/*
 * Stores the chans (channels.h): a table of all chans, whose key is the name,
 * the kind and (for a mutex) the fairness; and a list of the lingering chans,
 * ordered by `until`.
 */
#include "channels.h"

#include "backends/common/table.h"
#include "base/list.h"
#include "lock.h"
#include "redis.h"

static uint16_t channels_number_of(enum hf_kind kind, bool fair)
{
    return (uint16_t)(kind << 1 | fair);
}

struct rd_chan *hf__rd_chan_find(const struct redis *r, const char *name,
                                 size_t len, enum hf_kind kind, bool fair)
{
    return hf__table_find(&r->chans.table, channels_number_of(kind, fair), name,
                          len);
}

struct rd_chan *hf__rd_chan_add(struct redis *r, const struct hf__remote *m)
{
    bool fair = m->fair && m->kind == HF_MUTEX;
    struct rd_chan *c =
        hf__table_add(&r->chans.table, sizeof(*c),
                      channels_number_of(m->kind, fair), m->name, m->name_len);

    if (c) {
        c->kind = m->kind;
        c->fair = fair;
    }
    return c;
}

void hf__rd_chan_linger(struct redis *r, struct rd_chan *c, hf__time until)
{
    c->until = until;
    hf__deque_add(r->chans.oldest, r->chans.newest, c);
}

void hf__rd_chan_unlinger(struct redis *r, struct rd_chan *c)
{
    hf__deque_remove(r->chans.oldest, r->chans.newest, c);
}

void hf__rd_chan_add_lock(struct rd_chan *c, struct rd_lock *lock)
{
    lock->chan = c;
    lock->next = c->locks;
    c->locks = lock;
}

void hf__rd_chan_remove_lock(struct rd_lock *lock)
{
    struct rd_lock **at;

    if (!lock->chan)
        return;
    for (at = &lock->chan->locks; *at != lock; at = &(*at)->next)
        ;
    *at = lock->next;
    lock->next = NULL;
    lock->chan = NULL;
}

void hf__rd_chan_forget(struct redis *r, struct rd_chan *c)
{
    hf__rd_chan_unlinger(r, c);
    while (c->locks)
        hf__rd_chan_remove_lock(c->locks);
    hf__table_remove(&r->chans.table, c);
}

/* ---- bells -------------------------------------------------------------- */

struct rd_chan *hf__rd_chan_next(const struct redis *r, const struct rd_chan *c)
{
    return hf__table_next(&r->chans.table, c);
}

void hf__rd_ring_one(struct redis *r, struct rd_lock *lock)
{
    if (lock->attempting)
        /* The reply to the attempt may be older than this event, so the lock
         * must attempt again after the reply. */
        lock->rang = true;
    else if (lock->waits)
        r->core->bell(r->client, lock->remote);
}

void hf__rd_ring(struct redis *r, struct rd_chan *c)
{
    for (struct rd_lock *lock = c->locks; lock; lock = lock->next)
        hf__rd_ring_one(r, lock);
}

void hf__rd_ring_all(struct redis *r)
{
    for (struct rd_chan *c = NULL; (c = hf__rd_chan_next(r, c));)
        hf__rd_ring(r, c);
}

void hf__rd_no_messages(struct redis *r, const char *verb, const char *text)
{
    r->core->log(r->client, "redis: %s: %.120s; polling instead", verb, text);
    hf__rd_ring_all(r);
}
