#include "core/events.h"

#include "base/futex.h"
#include "base/list.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/line.h"
#include "core/loss_reason.h"
#include "core/wakeup.h"
#include "policy/lease.h"

#include <string.h>

/* How many events are kept at most for a program that does not dispatch. The
 * events that are part of a line (one loss per line) do not count. */
#define EVENTS_MAX 1024

/* An event that is not part of a line. */
struct event_item {
    struct hf__event event; /* must be first */
    char name[];
};

static const char *events_name_of(const hf_client *c, const struct hf__line *n)
{
    return n->text + strlen(c->prefix);
}

static size_t events_name_len(const hf_client *c, const struct hf__line *n)
{
    return n ? n->remote.name_len - strlen(c->prefix) : 0;
}

static struct hf__event *events_allocate_locked(hf_client *c, int type,
                                                const struct hf__line *n)
{
    size_t len = events_name_len(c, n);
    struct event_item *item = NULL;
    /* HF_EVENT_WANTED may use only half of the room. However many of these
     * events other clients cause, room remains for events that matter more. */
    unsigned room = type == HF_EVENT_WANTED ? EVENTS_MAX / 2 : EVENTS_MAX;

    if (c->events_allocated < room)
        item = hf__alloc(c, sizeof(*item) + len + 1);
    if (!item)
        return NULL;
    if (n)
        memcpy(item->name, events_name_of(c, n), len);
    item->event.place = HF__ALLOCATED;
    c->events_allocated++;
    return &item->event;
}

static void events_queue_locked(hf_client *c, struct hf__event *e, int type)
{
    e->type = type;
    hf__deque_add(c->events, c->events_tail, e);
    c->events_len++;
    hf__fd_post(c->ready_fd);
}

static void events_unqueue_locked(hf_client *c, struct hf__event *e)
{
    e->type = 0;
    hf__deque_remove(c->events, c->events_tail, e);
    c->events_len--;
}

void hf__event_queue_locked(hf_client *c, int type, struct hf__line *n,
                            uint64_t token, struct hf__loss loss)
{
    struct hf__event *e;

    if (!c->on_event || __atomic_load_n(&c->closed, __ATOMIC_ACQUIRE))
        return;
    if (type == HF_EVENT_LOST && n && !hf__event_of_loss(n)->type)
        e = hf__event_of_loss(n);
    else
        e = events_allocate_locked(c, type, n);
    if (e) {
        e->token = token;
        e->loss = loss;
        e->name_len = (uint16_t)events_name_len(c, n);
        events_queue_locked(c, e, type);
    } else if (!c->overflow.type) {
        c->overflow.place = HF__IN_CLIENT;
        events_queue_locked(c, &c->overflow, HF_EVENT_OVERFLOW);
    }
}

void hf__event_detach_locked(struct hf__line *n)
{
    struct hf__event *e = n->client->on_event ? hf__event_of_loss(n) : NULL;
    int type = e ? e->type : 0;

    if (!type)
        return;
    events_unqueue_locked(n->client, e);
    e->type = -1; /* so that hf__event_queue_locked() does not use e */
    hf__event_queue_locked(n->client, type, n, e->token, e->loss);
}

void hf__event_drop_all_locked(hf_client *c)
{
    struct hf__event *e;

    while ((e = c->events)) {
        events_unqueue_locked(c, e);
        if (e->place == HF__ALLOCATED)
            hf__free(c, e);
    }
    c->events_allocated = 0;
}

/* Copies the event first, because its memory may be reused once client->mu is
 * unlocked. */
bool hf__event_next(hf_client *c, struct hf__event_copy *t)
{
    HF__HOLDING(&c->mu);
    struct hf__event *e = c->events, was;

    if (!e)
        return false;
    was = *e;
    events_unqueue_locked(c, e);
    if (was.name_len)
        memcpy(t->name,
               was.place == HF__ALLOCATED
                   ? ((struct event_item *)e)->name
                   : events_name_of(c, (struct hf__line *)(e + 1)),
               was.name_len);
    if (was.place == HF__ALLOCATED) {
        c->events_allocated--;
        hf__free(c, e);
    }
    t->name[was.name_len] = '\0';
    t->reason.text[0] = '\0';
    if (was.type == HF_EVENT_LOST)
        t->reason = hf__reason(c, was.loss);
    t->event =
        (hf_event){was.type, t->name, was.name_len, was.token, t->reason.text};
    return true;
}
