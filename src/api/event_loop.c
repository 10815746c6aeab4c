#include "api/event_loop.h"

#include "api/lock_verb.h"
#include "api/request_verb.h"
#include "api/watch.h"
#include "base/futex.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/async.h"
#include "core/callbacks.h"
#include "core/client.h"
#include "core/events.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/loss_fd.h"
#include "core/wakeup.h"
#include "loop/deliver.h"
#include "loop/driver.h"

#include <sys/epoll.h>
#include <unistd.h>

/* A dispatch that is running on this thread, and the client whose callbacks it
 * calls. Dispatches may be nested, because a callback may dispatch a different
 * client. */
struct frame {
    const hf_client *client;
    struct frame *outer;
};

static __thread struct frame *dispatching
    __attribute__((tls_model("initial-exec")));

int hf_client_fd(hf_client *c)
{
    HF__UNCANCELLED;
    struct epoll_event ev = {.events = EPOLLIN};
    int fd, rc = hf__client_usable(c, NULL);

    if (rc)
        return rc;
    HF__HOLDING(&c->mu);
    if (c->outer_fd >= 0)
        return c->outer_fd;
    fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd >= 0 && (epoll_ctl(fd, EPOLL_CTL_ADD, c->epfd, &ev) ||
                    epoll_ctl(fd, EPOLL_CTL_ADD, c->ready_fd, &ev))) {
        close(fd);
        fd = -1;
    }
    c->outer_fd = fd;
    hf__helper_due_locked(c, 0); /* the program drives from now on */
    return fd < 0 ? HF_EBACKEND : fd;
}

bool hf__loop_run_callback(struct hf__async *a)
{
    hf_lock *lock = a->lock;
    union hf__done done = a->done;
    void *arg = a->arg;
    int result;
    bool is_latch = lock->line->remote.kind == HF_LATCH;
    hf_client *c = lock->line->client;

    /* If hf__verb_answered() sends another request, *a must not be used after
     * the call: another thread may already take the next step of the verb. */
    result =
        a->call.request ? hf__verb_answered(lock, &a->call, NULL) : a->result;
    if (result == HF__PENDING) {
        /* If another thread dispatches too, the handle may already be freed, so
         * only the client is used from here on. */
        hf__deliver(c, hf__now());
        hf__helper_check_later(c);
        return false;
    }
    /* From here on the handle may be freed, or used again, even by the
     * callback. */
    hf__mutex_lock(&lock->line->mu);
    a->busy = false;
    lock->waits--;
    hf__lines_rest(a->line);
    hf__line_unlock(lock->line);
    if (is_latch)
        done.latch(arg, (hf_latch *)lock, result);
    else
        done.lock(arg, lock, result);
    return true;
}

/* Returns whether this is a child process. A callback may have forked and
 * returned in the child, too; the child must not touch anything. */
static bool loop_forked(const hf_client *c)
{
    return hf__client_check(c) == HF_EFORK;
}

/* Calls the callbacks that are queued now. Callbacks that are added during
 * these calls wait for the next dispatch; the descriptor is readable until
 * then. Without this limit dispatch might never return: a callback may begin a
 * verb that ends at once. */
static int loop_call_back_all(hf_client *c)
{
    struct hf__async *a;
    size_t left;
    int called = 0;

    hf__mutex_lock(&c->mu);
    left = c->callbacks_len;
    hf__mutex_unlock(&c->mu);
    for (; left && (a = hf__callback_next(c)); left--) {
        called += hf__loop_run_callback(a);
        if (loop_forked(c))
            return HF_EFORK;
    }
    return called;
}

/* Reads the input, and lets the backend do what is due, while another thread
 * drives. Without this call, the descriptor of the program would stay readable
 * until the driver has read the input, and the program would dispatch
 * repeatedly for nothing. */
static void loop_advance_beside_driver(hf_client *c)
{
    hf__time now = hf__now();

    hf__mutex_lock(&c->mu);
    hf__driver_move_locked(c, now);
    hf__driver_due_locked(c, c->be->next_timeout(c->self));
    hf__mutex_unlock(&c->mu);
    hf__deliver(c, now);
}

static int loop_dispatch(hf_client *c)
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
        loop_advance_beside_driver(c);
    }
    called = loop_call_back_all(c);
    if (called < 0)
        return called;
    hf__mutex_lock(&c->mu);
    left = c->events_len;
    hf__mutex_unlock(&c->mu);
    for (; left && hf__event_next(c, &t); left--, called++) {
        c->on_event(c->event_arg, &t.event);
        if (loop_forked(c))
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
    int rc = hf__client_usable(c, NULL);

    if (rc)
        return rc;
    if (!hf__client_enter(c))
        return HF_ECLOSED;
    dispatching = &here;
    rc = loop_dispatch(c);
    /* Calls by coroutines of one thread need not end in the reverse order of
     * their beginning. */
    for (at = &dispatching; *at != &here; at = &(*at)->outer)
        ;
    *at = here.outer;
    if (rc != HF_EFORK)
        hf__client_leave(c);
    return rc;
}

int hf_lock_fd(hf_lock *lock)
{
    HF__UNCANCELLED;
    struct hf__line *held;
    int rc = hf__lock_begin(lock, NULL), fd;

    if (rc)
        return rc;
    if (lock->loss_fd < 0 && hf__loss_fd_open(lock)) {
        (void)hf__pick_check(lock, &held, NULL); /* this may find a loss */
        hf__loss_fd_start(lock);
    }
    fd = lock->loss_fd;
    hf__line_unlock(lock->line);
    return fd < 0 ? HF_EBACKEND : fd;
}
