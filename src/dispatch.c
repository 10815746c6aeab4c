/* What a program with a loop of its own gets: callbacks and events, on the
 * thread that dispatches and nowhere else. */
#include "core.h"

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

#define EVENTS_MAX 1024 /* kept for a program that does not dispatch */

void hf__engine_callback_locked(hf_client *c, struct hf__async *a, int result)
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

void hf__engine_event_locked(hf_client *c, int type, const struct hf__name *n,
                             uint64_t token, const char *reason)
{
    size_t prefix = n ? strlen(c->prefix) : 0;
    size_t len = n ? n->remote.name_len - prefix : 0;
    struct hf__event_item *e;

    if (!c->on_event || c->events_len >= EVENTS_MAX)
        return;
    /* However often others ask, there is room for what matters. */
    if (type == HF_EVENT_WANTED && c->events_len >= EVENTS_MAX / 2)
        return;
    e = hf__alloc(c, sizeof(*e) + len + 1 + strlen(reason) + 1);
    if (!e)
        return;
    e->type = type;
    e->token = token;
    e->name_len = len;
    if (n)
        memcpy(e->name, n->text + prefix, len);
    e->reason = strcpy(e->name + len + 1, reason);
    hf__fifo_add(c->events, c->events_tail, e, next);
    c->events_len++;
    hf__fd_post(c->ready_fd);
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
        hf__keeper_due_locked(c, 0); /* it leaves the driving to the program */
    }
    hf__mutex_unlock(&c->mu);
    return fd < 0 ? HF_EBACKEND : fd;
}

struct hf__async *hf__engine_next_callback(hf_client *c)
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

static struct hf__event_item *next_event(hf_client *c)
{
    struct hf__event_item *e;

    hf__mutex_lock(&c->mu);
    e = c->events;
    if (e) {
        c->events = e->next;
        c->events_len--;
    }
    hf__mutex_unlock(&c->mu);
    return e;
}

bool hf__engine_call_back(struct hf__async *a)
{
    hf_lock *lock = a->lock;
    union hf__done done = a->done;
    void *arg = a->arg;
    int result;
    bool is_latch = lock->name->remote.kind == HF_LATCH;
    hf_client *c = lock->name->client;

    /* If it asks once more, a is not ours any more. */
    result =
        a->talk.flight ? hf__talk_answered(lock, &a->talk, NULL) : a->result;
    if (result == HF__PENDING) {
        /* Another thread may dispatch as well: the handle may be gone. */
        hf__engine_deliver(c, hf__now());
        hf__see_to_it(c);
        return false;
    }
    /* From here on the handle may be used again, in the callback too, or be
     * freed. */
    hf__mutex_lock(&lock->name->mu);
    a->busy = false;
    lock->waits--;
    hf__line_rest(a->line);
    hf__name_unlock(lock->name);
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
    for (; left && (a = hf__engine_next_callback(c)); left--) {
        called += hf__engine_call_back(a);
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
    hf__engine_move_locked(c, now);
    hf__engine_due_locked(c, c->be->next_timeout(c->self));
    hf__mutex_unlock(&c->mu);
    hf__engine_deliver(c, now);
}

static int dispatch(hf_client *c)
{
    struct hf__event_item *e;
    unsigned left;
    int called, rc;

    hf__fd_drain(c->ready_fd);
    if (c->direct) {
        hf__engine_deliver(c, hf__now());
    } else if (hf__engine_take(c)) {
        hf__engine_round(c, NULL, 0);
        hf__engine_give(c);
    } else {
        advance_beside_driver(c);
    }
    called = call_back_all(c);
    if (called < 0)
        return called;
    hf__mutex_lock(&c->mu);
    left = c->events_len;
    hf__mutex_unlock(&c->mu);
    for (; left && (e = next_event(c)); left--, called++) {
        hf_event event = {e->type, e->name, e->name_len, e->token, e->reason};

        c->on_event(c->event_arg, &event);
        hf__free(c, e);
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
