/*
 * The driver's role. One thread at a time sleeps on the client's descriptors
 * and moves the backend on, for everybody; the others sleep until they are
 * told, and whoever leaves passes the role on. So a lone caller goes from
 * socket to socket without a hand-over, and many share one system call.
 *
 * Delivering (taking the backend's marks to the names) needs no role: it is
 * done by whoever finds something, under the mutexes that core.h lists.
 */
#include "core.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 1024 /* kept for a program that does not dispatch */

static void post(int fd)
{
    uint64_t one = 1;
    ssize_t n;

    do
        n = write(fd, &one, sizeof(one));
    while (n < 0 && errno == EINTR);
}

static void drain(int fd)
{
    uint64_t many;

    while (read(fd, &many, sizeof(many)) < 0 && errno == EINTR)
        ;
}

void hf__engine_interrupt(hf_client *c)
{
    post(c->wake_fd);
}

void hf__sleeper_wake(hf_client *c, struct hf__sleeper *s)
{
    __atomic_add_fetch(s->word, 1, __ATOMIC_SEQ_CST);
    switch (__atomic_load_n(&s->posture, __ATOMIC_SEQ_CST)) {
    case HF__PARKED:
        hf__futex_wake(s->word, 1);
        break;
    case HF__DRIVING:
        hf__engine_interrupt(c);
        break;
    default:
        break; /* it looks at its word before it sleeps */
    }
}

/* ---- delivery ---------------------------------------------------------- */

/* The time of an asynchronous wait is over. The handle cannot go away as long
 * as `firing` is set: its callback waits for that. */
static void async_over(struct hf__async *a, hf__time now)
{
    struct hf__name *n = a->lock->name;
    struct hf__lease *l = &n->gate.lease;
    hf_client *c = n->client;

    hf__mutex_lock(&n->mu);
    if (a->waiter.state == HF__W_FINISHED) {
        ; /* it was quicker */
    } else if (l->state == HF__ASKING && !l->heard && now < a->grace) {
        hf__mutex_lock(&c->mu);
        hf__timers_set(&c->timers, &a->timer, a->grace);
        hf__mutex_unlock(&c->mu);
    } else {
        a->result = hf__gate_leave(
            &n->gate, &a->waiter, a->waiter.is_try ? HF_EBACKEND : HF_ETIMEDOUT,
            hf__name_wake);
        hf__name_run(n, now);
        hf__mutex_lock(&c->mu);
        c->async_waits--;
        hf__engine_callback_locked(c, a);
        hf__mutex_unlock(&c->mu);
    }
    hf__mutex_unlock(&n->mu);
    hf__mutex_lock(&c->mu);
    a->firing = false;
    hf__mutex_unlock(&c->mu);
}

#define MANY 256

/* Takes timers out that are due before then: names, of which each gets a
 * reference, and asynchronous waits, which are ended. */
static size_t due_names(hf_client *c, hf__time before, hf__time now,
                        struct hf__name **names, size_t room)
{
    size_t len = 0;

    while (len < room) {
        struct hf__timer *t;

        hf__mutex_lock(&c->mu);
        t = hf__timers_pop(&c->timers, before);
        if (t && t->is_name) {
            names[len] = hf__container(t, struct hf__name, timer);
            names[len++]->refs++;
        } else if (t && t->at > now) {
            hf__timers_set(&c->timers, t, t->at); /* a wait is not cut short */
            t = NULL;
        } else if (t) {
            hf__container(t, struct hf__async, timer)->firing = true;
        }
        hf__mutex_unlock(&c->mu);
        if (!t)
            break;
        if (!t->is_name)
            async_over(hf__container(t, struct hf__async, timer), now);
    }
    return len;
}

/* Lets the names know; those to be renewed stay, at the front. */
static size_t tell_names(hf_client *c, struct hf__name **names, size_t len,
                         hf__time now)
{
    size_t renew = 0;

    for (size_t i = 0; i < len; i++) {
        if (hf__name_timer(names[i], now)) {
            names[renew++] = names[i];
            continue;
        }
        hf__mutex_lock(&c->mu);
        hf__name_unref_locked(names[i]);
        hf__mutex_unlock(&c->mu);
    }
    return renew;
}

static void deliver_timers(hf_client *c, hf__time now)
{
    struct hf__name *names[MANY];
    size_t len, renew;

    while ((len = due_names(c, now, now, names, MANY))) {
        renew = tell_names(c, names, len, now);
        if (!renew)
            continue;
        /* Renewals go together: those that are due soon come along. */
        len = due_names(c, now + (hf__time)c->ttl_ms * HF__MS / 12, now,
                        names + renew, MANY - renew);
        renew += tell_names(c, names + renew, len, now);
        hf__renew_names(c, names, renew, now);
    }
}

static void deliver_landed(hf_client *c, hf__time now)
{
    struct hf__flight *f;

    for (;;) {
        hf__mutex_lock(&c->mu);
        f = c->landed;
        if (f)
            c->landed = f->next_landed;
        hf__mutex_unlock(&c->mu);
        if (!f)
            return;
        if (f->req.op == HF__RENEW)
            hf__renew_landed(c, f, now);
        hf__mutex_lock(&c->mu);
        f->delivered = true;
        if (f->sleeper) {
            hf__sleeper_wake(c, f->sleeper);
            f = NULL;
        }
        hf__mutex_unlock(&c->mu);
        if (f)
            hf__flight_free(c, f);
    }
}

void hf__engine_deliver(hf_client *c, hf__time now)
{
    for (;;) {
        struct hf__name *n;

        hf__mutex_lock(&c->mu);
        n = c->news;
        if (n) {
            c->news = n->next_news;
            if (!c->news)
                c->news_tail = NULL;
            n->in_news = false;
        }
        hf__mutex_unlock(&c->mu);
        if (!n)
            break;
        hf__name_news(n, now);
        hf__mutex_lock(&c->mu);
        hf__name_unref_locked(n);
        hf__mutex_unlock(&c->mu);
    }
    deliver_landed(c, now);
    deliver_timers(c, now);
}

/* ---- the role ---------------------------------------------------------- */

static hf__time min_time(hf__time a, hf__time b)
{
    return a < b ? a : b;
}

static int timeout_ms(hf__time until)
{
    hf__time left;

    if (until == HF__NEVER)
        return -1;
    left = until - hf__now();
    if (left <= 0)
        return 0;
    left = (left + HF__MS - 1) / HF__MS;
    return left > 60000 ? 60000 : (int)left;
}

void hf__engine_round(hf_client *c, struct hf__sleeper *s, hf__time until)
{
    struct epoll_event ev[4];
    bool busy;
    int n;

    hf__mutex_lock(&c->mu);
    c->rounds++;
    busy = c->news || c->landed;
    until = min_time(until, hf__timers_next(&c->timers));
    until = min_time(until, c->be->next_timeout(c->self));
    hf__mutex_unlock(&c->mu);
    n = epoll_wait(c->epfd, ev, 4, busy ? 0 : timeout_ms(until));
    if (s)
        __atomic_store_n(&s->posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    for (int i = 0; i < n; i++)
        if (ev[i].data.fd == c->wake_fd)
            drain(c->wake_fd);
    until = hf__now();
    hf__mutex_lock(&c->mu);
    c->be->advance(c->self, until);
    hf__mutex_unlock(&c->mu);
    hf__engine_deliver(c, until);
}

static void unfollow_locked(hf_client *c, struct hf__sleeper *s)
{
    if (!s->following)
        return;
    s->following = false;
    if (s->prev)
        s->prev->next = s->next;
    else
        c->followers = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        c->followers_tail = s->prev;
}

static void follow_locked(hf_client *c, struct hf__sleeper *s)
{
    if (s->following)
        return;
    s->following = true;
    s->next = NULL;
    s->prev = c->followers_tail;
    if (s->prev)
        s->prev->next = s;
    else
        c->followers = s;
    c->followers_tail = s;
}

static void pass_on_locked(hf_client *c)
{
    if (!c->driven && c->followers)
        hf__sleeper_wake(c, c->followers);
}

bool hf__engine_take(hf_client *c)
{
    bool taken;

    hf__mutex_lock(&c->mu);
    taken = !c->driven;
    c->driven = true;
    hf__mutex_unlock(&c->mu);
    return taken;
}

void hf__engine_give(hf_client *c)
{
    hf__mutex_lock(&c->mu);
    c->driven = false;
    pass_on_locked(c);
    hf__mutex_unlock(&c->mu);
}

/* Takes the role if it is free. Else this thread is a follower, and its
 * posture says so before anybody could want to wake it. */
static bool lead_or_follow(hf_client *c, struct hf__sleeper *s)
{
    bool lead;

    hf__mutex_lock(&c->mu);
    lead = !c->driven;
    if (lead) {
        c->driven = true;
        unfollow_locked(c, s);
    } else {
        follow_locked(c, s);
        __atomic_store_n(&s->posture, HF__PARKED, __ATOMIC_SEQ_CST);
    }
    hf__mutex_unlock(&c->mu);
    return lead;
}

void hf__engine_wait(hf_client *c, struct hf__sleeper *s, hf__ready_fn *ready,
                     void *arg)
{
    bool leading = false;
    hf__time until;

    hf__mutex_lock(&c->mu);
    c->inside++;
    hf__mutex_unlock(&c->mu);
    for (;;) {
        uint32_t seen = __atomic_load_n(s->word, __ATOMIC_SEQ_CST);

        until = HF__NEVER;
        if (ready(arg, hf__now(), &until))
            break;
        if (!leading)
            leading = lead_or_follow(c, s);
        if (!leading) {
            hf__futex_wait(s->word, seen, until);
            __atomic_store_n(&s->posture, HF__AWAKE, __ATOMIC_SEQ_CST);
            continue;
        }
        __atomic_store_n(&s->posture, HF__DRIVING, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(s->word, __ATOMIC_SEQ_CST) == seen)
            hf__engine_round(c, s, until);
        __atomic_store_n(&s->posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    }
    hf__mutex_lock(&c->mu);
    unfollow_locked(c, s);
    if (leading)
        c->driven = false;
    pass_on_locked(c);
    c->inside--;
    hf__mutex_unlock(&c->mu);
}

/* ---- flights ----------------------------------------------------------- */

struct hf__flight *hf__flight_new(hf_client *c, size_t extra)
{
    struct hf__flight *f = hf__alloc(c, sizeof(*f) + extra);

    if (!f)
        return NULL;
    hf__mutex_lock(&c->mu);
    f->next = c->flights;
    if (f->next)
        f->next->prev = f;
    c->flights = f;
    hf__mutex_unlock(&c->mu);
    return f;
}

void hf__flight_free(hf_client *c, struct hf__flight *f)
{
    hf__mutex_lock(&c->mu);
    if (f->prev)
        f->prev->next = f->next;
    else
        c->flights = f->next;
    if (f->next)
        f->next->prev = f->prev;
    hf__mutex_unlock(&c->mu);
    if (f->req.op != HF__RENEW)
        hf__query_free(c, &f->query);
    hf__free(c, f);
}

void hf__flight_submit(hf_client *c, struct hf__flight *f)
{
    int rc;

    hf__mutex_lock(&c->mu);
    f->req.flying = true;
    c->under_way++;
    rc = f->req.op == HF__RENEW ? c->be->renew(c->self, &f->batch)
                                : c->be->query(c->self, &f->query);
    if (rc != HF__PENDING) {
        f->req.result = (int16_t)rc;
        hf__core.done(c, &f->req);
    }
    hf__mutex_unlock(&c->mu);
}

struct flight_wait {
    hf_client *client;
    struct hf__flight *flight;
    hf__time until;
};

static bool flight_ready(void *arg, hf__time now, hf__time *until)
{
    struct flight_wait *w = arg;
    bool over;

    hf__mutex_lock(&w->client->mu);
    over = w->flight->delivered;
    hf__mutex_unlock(&w->client->mu);
    *until = w->until;
    return over || now >= w->until;
}

bool hf__flight_wait(hf_client *c, struct hf__flight *f)
{
    struct hf__sleeper s;
    struct flight_wait w = {c, f,
                            hf__now() + (hf__time)c->op_timeout_ms * HF__MS};
    bool over;

    hf__sleeper_init(&s, NULL);
    f->sleeper = &s;
    hf__flight_submit(c, f);
    hf__engine_deliver(c, hf__now());
    hf__engine_wait(c, &s, flight_ready, &w);
    hf__mutex_lock(&c->mu);
    over = f->delivered;
    f->sleeper = NULL; /* delivery frees it from now on */
    hf__mutex_unlock(&c->mu);
    return over;
}

/* ---- callbacks and events ---------------------------------------------- */

void hf__engine_callback_locked(hf_client *c, struct hf__async *a)
{
    a->next = NULL;
    if (c->callbacks_tail)
        c->callbacks_tail->next = a;
    else
        c->callbacks = a;
    c->callbacks_tail = a;
    post(c->ready_fd);
}

void hf__engine_event_locked(hf_client *c, int type, const struct hf__name *n,
                             uint64_t token)
{
    size_t prefix = n ? strlen(c->prefix) : 0;
    size_t len = n ? n->remote.name_len - prefix : 0;
    struct hf__event_item *e;

    if (!c->on_event || c->events_len >= EVENTS_MAX)
        return;
    e = hf__alloc(c, sizeof(*e) + len + 1);
    if (!e)
        return;
    e->type = type;
    e->token = token;
    e->name_len = len;
    if (n)
        memcpy(e->name, n->text + prefix, len);
    if (c->events_tail)
        c->events_tail->next = e;
    else
        c->events = e;
    c->events_tail = e;
    c->events_len++;
    post(c->ready_fd);
}

int hf_client_fd(hf_client *c)
{
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
    while ((a = c->callbacks) && a->firing) { /* for an instant */
        hf__mutex_unlock(&c->mu);
        sched_yield();
        hf__mutex_lock(&c->mu);
    }
    if (a) {
        c->callbacks = a->next;
        if (!c->callbacks)
            c->callbacks_tail = NULL;
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
        if (!c->events)
            c->events_tail = NULL;
        c->events_len--;
    }
    hf__mutex_unlock(&c->mu);
    return e;
}

void hf__engine_call_back(struct hf__async *a)
{
    hf_lock *lock = a->lock;
    hf_done_fn done = a->done;
    void *arg = a->arg;
    int result = a->result;

    /* From here on the handle may be used again, in the callback too. */
    hf__mutex_lock(&lock->name->mu);
    a->busy = false;
    lock->waits--;
    hf__mutex_unlock(&lock->name->mu);
    done(arg, lock, result);
}

int hf_client_dispatch(hf_client *c)
{
    struct hf__async *a;
    struct hf__event_item *e;
    int called = 0, rc;

    if (!c)
        return HF_EINVAL;
    rc = hf__client_check(c);
    if (rc)
        return rc;
    drain(c->ready_fd);
    if (c->direct) {
        hf__engine_deliver(c, hf__now());
    } else if (hf__engine_take(c)) {
        hf__engine_round(c, NULL, 0);
        hf__engine_give(c);
    }
    for (; (a = hf__engine_next_callback(c)); called++)
        hf__engine_call_back(a);
    for (; (e = next_event(c)); called++) {
        hf_event event = {e->type, e->name, e->name_len, e->token};

        c->on_event(c->event_arg, &event);
        hf__free(c, e);
    }
    return called;
}
