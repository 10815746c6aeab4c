/* The driver: see driver.h. */
#include "loop/driver.h"

#include "base/futex.h"
#include "base/list.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/client.h"
#include "core/outbox.h"
#include "core/wakeup.h"
#include "loop/deliver.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 64 /* enough for wake_fd and a backend's descriptors */

static int driver_timeout_ms(hf__time until)
{
    hf__time left;

    if (until == HF__NEVER)
        return -1;
    left = until - hf__now();
    if (left <= 0)
        return 0;
    if (left > HF__NAP)
        left = HF__NAP;
    return (int)((left + HF__MS - 1) / HF__MS);
}

int hf__driver_watch(hf_client *c, int fd, uint32_t events, uint32_t tag)
{
    struct epoll_event ev = {.events = events, .data.u32 = tag};

    if (!events)
        return epoll_ctl(c->epfd, EPOLL_CTL_DEL, fd, NULL) ? HF_EBACKEND : 0;
    if (!epoll_ctl(c->epfd, EPOLL_CTL_MOD, fd, &ev))
        return 0;
    if (errno == ENOENT && !epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd, &ev))
        return 0;
    return errno == ENOMEM ? HF_ENOMEM : HF_EBACKEND;
}

static void driver_ready_locked(hf_client *c, const struct epoll_event *ev,
                                int n, hf__time now)
{
    for (int i = 0; i < n; i++)
        if (ev[i].data.u32 != HF__TAG_WAKE)
            c->be->ready(c->self, ev[i].data.u32, ev[i].events, now);
}

static void driver_advance_locked(hf_client *c, hf__time now)
{
    c->be->advance(c->self, now);
    while (c->may_go_on) {
        c->may_go_on = false;
        hf__outbox_flush_locked(c);
        c->be->advance(c->self, now);
    }
}

/* wake_fd is not drained here, so the driver sees its event, too. */
void hf__driver_move_locked(hf_client *c, hf__time now)
{
    struct epoll_event ev[EVENTS];
    int n = 0;

    if (!c->direct)
        n = epoll_wait(c->epfd, ev, EVENTS, 0);
    driver_ready_locked(c, ev, n, now);
    driver_advance_locked(c, now);
}

hf__time hf__driver_next_locked(hf_client *c)
{
    hf__time at = hf__timers_next(&c->timers);

    return c->direct ? at : hf__min_time(at, c->be->next_timeout(c->self));
}

void hf__driver_round(hf_client *c, struct hf__sleeper *s, hf__time until)
{
    struct epoll_event ev[EVENTS];
    bool busy;
    int n;

    hf__mutex_lock(&c->mu);
    c->rounds++;
    busy = c->news || c->landed;
    until = hf__min_time(until, hf__driver_next_locked(c));
    c->driver_until = until;
    hf__mutex_unlock(&c->mu);
    n = epoll_wait(c->epfd, ev, EVENTS, busy ? 0 : driver_timeout_ms(until));
    if (s)
        __atomic_store_n(&s->posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    for (int i = 0; i < n; i++)
        if (ev[i].data.u32 == HF__TAG_WAKE)
            hf__fd_drain(c->wake_fd);
    until = hf__now();
    hf__mutex_lock(&c->mu);
    c->driver_until = 0;
    if (!c->direct) { /* only the helper thread calls advance() of a direct
                         backend */
        driver_ready_locked(c, ev, n, until);
        /* If a timeout of the backend has passed, events that have arrived in
         * the meantime are read before the backend acts on the timeout: this
         * thread may have been stopped on its way here. */
        if (c->be->next_timeout(c->self) <= until)
            hf__driver_move_locked(c, until);
        else
            driver_advance_locked(c, until);
    }
    hf__mutex_unlock(&c->mu);
    hf__deliver(c, until);
}

void hf__driver_due_locked(hf_client *c, hf__time at)
{
    if (!c->driven || c->helper_drives) {
        hf__helper_due_locked(c, at);
    } else if (at < c->driver_until) {
        c->driver_until = at;
        hf__fd_post(c->wake_fd);
    }
}

static void driver_unfollow_locked(hf_client *c, struct hf__sleeper *s)
{
    if (!s->following)
        return;
    s->following = false;
    hf__deque_remove(c->followers, c->followers_tail, s);
}

static void driver_follow_locked(hf_client *c, struct hf__sleeper *s)
{
    if (s->following)
        return;
    s->following = true;
    hf__deque_add(c->followers, c->followers_tail, s);
}

/* Returns how late the driver may be before another thread acts for its
 * followers. If requests are under way, the followers may be waiting for an
 * answer. Otherwise they can only be waiting for a bell. */
static hf__time driver_follower_patience_locked(const hf_client *c)
{
    return c->under_way ? hf__follower_patience(c) : HF__BELL_PATIENCE;
}

/* Passes the role to the first follower. If there is no follower, or the
 * follower is late, the helper thread does what is due. */
static void driver_pass_on_locked(hf_client *c)
{
    hf__time at;

    if (c->driven)
        return;
    if (c->followers)
        hf__sleeper_wake(c, c->followers);
    at = hf__driver_next_locked(c);
    if (c->followers) {
        at = at == HF__NEVER ? at : at + hf__driver_patience(c);
        if (!c->direct)
            at = hf__min_time(at,
                              hf__now() + driver_follower_patience_locked(c));
    } else if (hf__unattended_locked(c)) {
        at = 0; /* the helper thread must drive */
    } else if (c->under_way) {
        at = hf__min_time(at, hf__now() + HF__PATIENCE);
    }
    hf__helper_due_locked(c, at);
}

void hf__driver_lead_locked(hf_client *c)
{
    c->driven = true;
    c->driver = pthread_self();
}

bool hf__driver_take(hf_client *c)
{
    HF__HOLDING(&c->mu);

    if (c->driven)
        return false;
    hf__driver_lead_locked(c);
    return true;
}

void hf__driver_give(hf_client *c)
{
    HF__HOLDING(&c->mu);

    c->driven = false;
    driver_pass_on_locked(c);
}

/* Takes the role if it is free, and returns true. Otherwise this thread becomes
 * a follower; its posture is set before any other thread can try to wake it. */
static bool driver_lead_or_follow(hf_client *c, struct hf__sleeper *s)
{
    HF__HOLDING(&c->mu);

    if (!c->driven) {
        hf__driver_lead_locked(c);
        driver_unfollow_locked(c, s);
        return true;
    }
    driver_follow_locked(c, s);
    if (!c->direct && !c->helper_drives)
        hf__helper_due_locked(c,
                              hf__now() + driver_follower_patience_locked(c));
    __atomic_store_n(&s->posture, HF__PARKED, __ATOMIC_SEQ_CST);
    return false;
}

void hf__driver_wait(hf_client *c, struct hf__sleeper *s, hf__ready_fn *ready,
                     void *arg)
{
    bool leading = false;
    hf__time until;

    for (;;) {
        uint32_t seen;

        until = HF__NEVER;
        if (hf__sleeper_checks(s, &seen) && ready(arg, hf__now(), &until))
            break;
        if (!leading)
            leading = driver_lead_or_follow(c, s);
        if (!leading) {
            hf__futex_wait(s->word, seen, until);
            __atomic_store_n(&s->posture, HF__AWAKE, __ATOMIC_SEQ_CST);
            continue;
        }
        __atomic_store_n(&s->posture, HF__DRIVING, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(s->word, __ATOMIC_SEQ_CST) == seen)
            hf__driver_round(c, s, until);
        __atomic_store_n(&s->posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    }
    HF__HOLDING(&c->mu);
    driver_unfollow_locked(c, s);
    if (leading)
        c->driven = false;
    driver_pass_on_locked(c);
}
