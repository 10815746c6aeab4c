/* What a program with a loop of its own gets: callbacks and events, on the
 * thread that dispatches and nowhere else. */
#include "core/client.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Whose callbacks this thread runs; one may dispatch another client. */
struct frame {
    const hf_client *client;
    struct frame *outer;
};

static __thread struct frame *dispatching
    __attribute__((tls_model("initial-exec")));

#define EVENTS_MAX                                                             \
    1024 /* kept for a program that does not dispatch, beside                  \
            the losses of its handles */

/* One that has no place in a line. */
struct event_item {
    struct hf__event event; /* must be first */
    char name[];
};

void hf__callback_queue_locked(hf_client *c, struct hf__async *a, int result)
{
    a->result = result == HF__GRANTED ? 0 : result;
    if (a->acquires) {
        c->async_waits--;
        hf__count_waited(c, a->lock->name->remote.kind, result,
                         hf__now() - a->since);
    }
    a->acquires = false;
    hf__timers_set(&c->timers, &a->timer, HF__NEVER);
    hf__fifo_add(c->callbacks, c->callbacks_tail, a, next);
    c->callbacks_len++;
    hf__fd_post(c->ready_fd);
}

static const char *name_of(const hf_client *c, const struct hf__line *n)
{
    return n->text + strlen(c->prefix);
}

static size_t name_len(const hf_client *c, const struct hf__line *n)
{
    return n ? n->remote.name_len - strlen(c->prefix) : 0;
}

static struct hf__event *allocate_locked(hf_client *c, int type,
                                         const struct hf__line *n)
{
    size_t len = name_len(c, n);
    struct event_item *item = NULL;
    /* However often others ask, there is room for what matters. */
    unsigned room = type == HF_EVENT_WANTED ? EVENTS_MAX / 2 : EVENTS_MAX;

    if (c->events_allocated < room)
        item = hf__alloc(c, sizeof(*item) + len + 1);
    if (!item)
        return NULL;
    if (n)
        memcpy(item->name, name_of(c, n), len);
    item->event.place = HF__ALLOCATED;
    c->events_allocated++;
    return &item->event;
}

static void queue_locked(hf_client *c, struct hf__event *e, int type)
{
    e->type = type;
    hf__queue_add(c->events, c->events_tail, e);
    c->events_len++;
    hf__fd_post(c->ready_fd);
}

static void unqueue_locked(hf_client *c, struct hf__event *e)
{
    e->type = 0;
    hf__queue_remove(c->events, c->events_tail, e);
    c->events_len--;
}

void hf__event_queue_locked(hf_client *c, int type, struct hf__line *n,
                            uint64_t token, struct hf__loss loss)
{
    struct hf__event *e;

    if (!c->on_event || __atomic_load_n(&c->closed, __ATOMIC_ACQUIRE))
        return;
    if (type == HF_EVENT_LOST && n && !hf__line_lost(n)->type)
        e = hf__line_lost(n);
    else
        e = allocate_locked(c, type, n);
    if (e) {
        e->token = token;
        e->loss = loss;
        e->name_len = (uint16_t)name_len(c, n);
        queue_locked(c, e, type);
    } else if (!c->overflow.type) {
        c->overflow.place = HF__IN_CLIENT;
        queue_locked(c, &c->overflow, HF_EVENT_OVERFLOW);
    }
}

void hf__event_detach_locked(struct hf__line *n)
{
    struct hf__event *e = n->client->on_event ? hf__line_lost(n) : NULL;
    int type = e ? e->type : 0;

    if (!type)
        return;
    unqueue_locked(n->client, e);
    e->type = -1; /* no place any more */
    hf__event_queue_locked(n->client, type, n, e->token, e->loss);
}

void hf__event_drop_all_locked(hf_client *c)
{
    struct hf__event *e;

    while ((e = c->events)) {
        unqueue_locked(c, e);
        if (e->place == HF__ALLOCATED)
            hf__free(c, e);
    }
    c->events_allocated = 0;
}

int hf_client_fd(hf_client *c)
{
    HF__UNCANCELLED;
    struct epoll_event ev = {.events = EPOLLIN};
    int fd, rc;

    if (!c)
        return HF_EINVAL;
    rc = hf__client_check(c);
    if (rc)
        return rc;
    hf__mutex_lock(&c->mu);
    fd = c->outer_fd;
    if (fd < 0) {
        fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd >= 0 && (epoll_ctl(fd, EPOLL_CTL_ADD, c->epfd, &ev) ||
                        epoll_ctl(fd, EPOLL_CTL_ADD, c->ready_fd, &ev))) {
            close(fd);
            fd = -1;
        }
        c->outer_fd = fd;
        hf__helper_due_locked(c, 0); /* it leaves the driving to the program */
    }
    hf__mutex_unlock(&c->mu);
    return fd < 0 ? HF_EBACKEND : fd;
}

struct hf__async *hf__callback_next(hf_client *c)
{
    struct hf__async *a;

    hf__mutex_lock(&c->mu);
    a = c->callbacks;
    if (a && a->firing)
        a = NULL; /* not yet: ready_fd will tell */
    if (a) {
        c->callbacks = a->next;
        c->callbacks_len--;
    }
    hf__mutex_unlock(&c->mu);
    return a;
}

/* One event, as the program sees it. */
struct hf__event_copy {
    hf_event event;
    char name[HF_NAME_MAX + 1];
    struct hf__reason reason;
};

/* Where it waited may be gone at once. */
static bool next_event(hf_client *c, struct hf__event_copy *t)
{
    struct hf__event *e, was;

    hf__mutex_lock(&c->mu);
    e = c->events;
    if (!e) {
        hf__mutex_unlock(&c->mu);
        return false;
    }
    was = *e;
    unqueue_locked(c, e);
    if (was.name_len)
        memcpy(t->name,
               was.place == HF__ALLOCATED
                   ? ((struct event_item *)e)->name
                   : name_of(c, (struct hf__line *)(e + 1)),
               was.name_len);
    if (was.place == HF__ALLOCATED) {
        c->events_allocated--;
        hf__free(c, e);
    }
    hf__mutex_unlock(&c->mu);
    t->name[was.name_len] = '\0';
    t->reason.text[0] = '\0';
    if (was.type == HF_EVENT_LOST)
        t->reason = hf__reason(c, was.loss);
    t->event =
        (hf_event){was.type, t->name, was.name_len, was.token, t->reason.text};
    return true;
}

bool hf__callback_run(struct hf__async *a)
{
    hf_lock *lock = a->lock;
    union hf__done done = a->done;
    void *arg = a->arg;
    int result;
    bool is_latch = lock->name->remote.kind == HF_LATCH;
    hf_client *c = lock->name->client;

    /* If it asks once more, a is not ours any more. */
    result =
        a->call.flight ? hf__verb_answered(lock, &a->call, NULL) : a->result;
    if (result == HF__PENDING) {
        /* Another thread may dispatch as well: the handle may be gone. */
        hf__deliver(c, hf__now());
        hf__helper_check_later(c);
        return false;
    }
    /* From here on the handle may be used again, in the callback too, or be
     * freed. */
    hf__mutex_lock(&lock->name->mu);
    a->busy = false;
    lock->waits--;
    hf__lines_rest(a->line);
    hf__line_unlock(lock->name);
    if (is_latch)
        done.latch(arg, (hf_latch *)lock, result);
    else
        done.lock(arg, lock, result);
    return true;
}

/* A callback may have forked and returned in the child, too: there, nothing
 * is touched any more. */
static bool forked(const hf_client *c)
{
    return hf__client_check(c) == HF_EFORK;
}

/* Those that wait now. One whose callback begins a verb that is over at once
 * would never end; the descriptor tells of it. */
static int call_back_all(hf_client *c)
{
    struct hf__async *a;
    size_t left;
    int called = 0;

    hf__mutex_lock(&c->mu);
    left = c->callbacks_len;
    hf__mutex_unlock(&c->mu);
    for (; left && (a = hf__callback_next(c)); left--) {
        called += hf__callback_run(a);
        if (forked(c))
            return HF_EFORK;
    }
    return called;
}

/* Whoever drives may not have come to it yet; the descriptor would be readable
 * until then. */
static void advance_beside_driver(hf_client *c)
{
    hf__time now = hf__now();

    hf__mutex_lock(&c->mu);
    hf__driver_move_locked(c, now);
    hf__driver_due_locked(c, c->be->next_timeout(c->self));
    hf__mutex_unlock(&c->mu);
    hf__deliver(c, now);
}

static int dispatch(hf_client *c)
{
    struct hf__event_copy t;
    unsigned left;
    int called, rc;

    hf__fd_drain(c->ready_fd);
    if (c->direct) {
        hf__deliver(c, hf__now());
    } else if (hf__driver_take(c)) {
        hf__driver_round(c, NULL, 0);
        hf__driver_give(c);
    } else {
        advance_beside_driver(c);
    }
    called = call_back_all(c);
    if (called < 0)
        return called;
    hf__mutex_lock(&c->mu);
    left = c->events_len;
    hf__mutex_unlock(&c->mu);
    for (; left && next_event(c, &t); left--, called++) {
        c->on_event(c->event_arg, &t.event);
        if (forked(c))
            return HF_EFORK;
    }
    rc = hf__watch_call_all(c);
    return rc < 0 ? rc : called + rc;
}

bool hf__is_dispatching(const hf_client *c)
{
    const struct frame *f = dispatching;

    while (f && f->client != c)
        f = f->outer;
    return f != NULL;
}

int hf_client_dispatch(hf_client *c)
{
    HF__UNCANCELLED;
    struct frame here = {c, dispatching}, **at;
    int rc;

    if (!c)
        return HF_EINVAL;
    rc = hf__client_check(c);
    if (rc)
        return rc;
    if (!hf__client_enter(c))
        return HF_ECLOSED;
    dispatching = &here;
    rc = dispatch(c);
    /* Coroutines of one thread need not end in order. */
    for (at = &dispatching; *at != &here; at = &(*at)->outer)
        ;
    *at = here.outer;
    if (rc != HF_EFORK)
        hf__client_leave(c);
    return rc;
}
