/* The helper thread, "hf-helper". The backend's open and close run here,
 * because they may block and must block no other thread. The helper thread
 * never runs a callback of the program. It sleeps on a futex or inside a direct
 * backend or, while it drives, on the client's descriptors. */
#include "loop/helper_thread.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/client.h"
#include "core/events.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/report.h"
#include "core/wakeup.h"
#include "loop/backend_services.h"
#include "loop/config.h"
#include "loop/deliver.h"
#include "loop/driver.h"
#include "policy/lease.h"

#include <signal.h>
#include <stdio.h>

struct turn {
    hf__time now, until;
    uint32_t word; /* helper_word before the thread looked for work */
    uint32_t rounds;
    bool stop, drive;
    hf__time asked; /* the value of helper_until after the sleep, during which
                       other threads may have lowered it */
    bool late;      /* another thread drives, but has not done what is due */
};

/* If the timer of a line is not set, sets it to `now`, so that the line is
 * checked. Called three times per TTL for a backend whose holds need no renewal
 * (endless). So these holds are checked as often as other holds are renewed:
 * the owner's thread may have exited, or the hold may have been broken. */
static void helper_check_all_locked(hf_client *c, hf__time now)
{
    for (size_t i = 0; i < c->buckets_len; i++)
        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket)
            if (!n->timer.place)
                hf__timers_set(&c->timers, &n->timer, now);
}

/* Returns when this thread must be awake while another thread drives:
 * - when something is due before the driver wakes, such as a timer that was set
 *   after the driver had gone to sleep;
 * - when something is due and the driver is late (hf__driver_patience);
 * - if requests are under way, after hf__follower_patience();
 * - at the time that another thread has requested (asked).
 * If driver_until is 0, the driver is awake, and looks for work before it
 * sleeps. A driver that leaves the role sets the time at which this thread must
 * be awake. */
static hf__time helper_beside_driver_locked(hf_client *c, const struct turn *t)
{
    hf__time at = hf__driver_next_locked(c);

    if (at >= c->driver_until && at != HF__NEVER)
        at += hf__driver_patience(c);
    if (c->under_way)
        at = hf__min_time(at, t->now + hf__follower_patience(c));
    if (t->asked > t->now)
        at = hf__min_time(at, t->asked);
    return at;
}

static void helper_plan_locked(hf_client *c, struct turn *t, hf__time poll_at)
{
    t->stop = c->helper_stop;
    t->until = hf__driver_next_locked(c);
    if (c->endless)
        t->until = hf__min_time(t->until, poll_at);
    if (!c->direct) {
        if (c->under_way)
            t->until = hf__min_time(t->until, t->now + HF__PATIENCE);
        t->drive = hf__unattended_locked(c) ||
                   (c->under_way && c->rounds == t->rounds);
    }
    t->rounds = c->rounds;
    if (c->driven && !c->direct && !t->late)
        t->until = helper_beside_driver_locked(c, t);
    t->drive = t->drive && !c->driven && !t->stop;
    /* Followers and unattended waits learn of a bell only when a thread reads
     * it from the server. This thread wakes at this interval to read it, in
     * case the driver does not. */
    if (!t->drive && !c->direct && (c->followers || hf__unattended_locked(c)))
        t->until = hf__min_time(t->until, t->now + HF__BELL_PATIENCE);
    if (__atomic_load_n(&c->session_lost, __ATOMIC_ACQUIRE))
        t->until = 0;
    if (t->drive)
        hf__driver_lead_locked(c);
    c->helper_drives = t->drive;
    c->helper_until = t->until;
}

static void helper_drive(hf_client *c, struct turn *t)
{
    hf__driver_round(c, NULL, t->until);
    hf__mutex_lock(&c->mu);
    c->helper_drives = false;
    c->helper_until = 0; /* this thread is awake and need not be woken */
    hf__mutex_unlock(&c->mu);
    hf__driver_give(c);
}

static void helper_act(hf_client *c, struct turn *t)
{
    if (t->drive) {
        helper_drive(c, t);
    } else if (t->until > t->now) {
        if (c->direct)
            c->be->park(c->self, NULL, &c->helper_word, t->word, t->until);
        else
            hf__futex_wait(&c->helper_word, t->word, t->until);
    }
    t->now = hf__now();
    hf__mutex_lock(&c->mu);
    t->asked = c->helper_until;
    t->late = !c->direct && c->driven && c->rounds == t->rounds &&
              (t->late ||
               t->now - hf__driver_patience(c) >= hf__driver_next_locked(c));
    c->helper_until = 0; /* this thread is awake and need not be woken */
    if (__atomic_exchange_n(&c->session_lost, 0, __ATOMIC_ACQ_REL)) {
        hf__event_queue_locked(c, HF_EVENT_LOST, NULL, 0,
                               hf__loss(HF__LOSS_SESSION, t->now));
        hf__report_session_locked(c);
    }
    hf__driver_move_locked(c, t->now);
    hf__mutex_unlock(&c->mu);
    hf__deliver(c, t->now);
}

static void helper_keep(hf_client *c)
{
    struct turn t = {0};
    hf__time period = (hf__time)c->ttl_ms * HF__MS / 3;
    hf__time poll_at = hf__now() + period;

    for (;;) {
        t.now = hf__now();
        t.word = __atomic_load_n(&c->helper_word, __ATOMIC_ACQUIRE);
        hf__mutex_lock(&c->mu);
        if (c->endless && t.now >= poll_at) {
            helper_check_all_locked(c, t.now);
            poll_at = t.now + period;
        }
        helper_plan_locked(c, &t, poll_at);
        hf__mutex_unlock(&c->mu);
        if (t.stop)
            return;
        helper_act(c, &t);
    }
}

/* Passes the result of the backend's open to hf_open(). Returns false if
 * hf_open() no longer waits; this thread must then free the client. */
static bool helper_report_open(hf_client *c, void *self, int rc)
{
    HF__HOLDING(&c->mu);

    c->self = self;
    c->open_result = rc;
    __atomic_store_n(&c->open_word, 1, __ATOMIC_RELEASE);
    hf__futex_wake(&c->open_word, 1);
    return !c->open_given_up;
}

/* Detaches all lines, because the backend is about to be closed. Handles that
 * are freed later find that client->self is NULL. */
static void helper_detach_all(hf_client *c, void *self)
{
    HF__HOLDING(&c->mu);

    for (size_t i = 0; i < c->buckets_len; i++)
        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket)
            c->be->detach(self, &n->remote);
    c->self = NULL;
}

static void *helper_main(void *arg)
{
    hf_client *c = arg;
    void *self = NULL;
    int rc;

    pthread_setname_np(pthread_self(), "hf-helper");
    rc = c->be->open(c, &hf__core, c->config, &self);
    if (!helper_report_open(c, self, rc)) {
        if (!rc)
            c->be->close(self);
        hf__config_free(c);
        hf__client_free(c);
        return NULL;
    }
    if (rc)
        return NULL;
    helper_keep(c);
    helper_detach_all(c, self);
    c->be->close(self);
    return NULL;
}

/* Waits until the backend's open has ended, at most until the time `until`. A
 * name lookup cannot be interrupted. If the open takes longer, the helper
 * thread completes it by itself, and then frees the client. */
static int helper_wait_open(hf_client *c, hf__time until, hf_error *err,
                            bool *given_up)
{
    const struct hf__url *url = c->config->url;
    uint32_t ms = c->config->open_timeout_ms;
    char what[80]; /* copied, because the client may be freed before it is
                      used */
    bool may_pass = hf__may_pass(c, HF_EBACKEND);

    if (url->hosts_len)
        snprintf(what, sizeof(what), "looking up %.60s", url->hosts[0].name);
    else
        snprintf(what, sizeof(what), "opening %.60s", c->be->name);

    while (!__atomic_load_n(&c->open_word, __ATOMIC_ACQUIRE) &&
           hf__now() < until)
        hf__futex_wait(&c->open_word, 0, until);
    hf__mutex_lock(&c->mu);
    *given_up = !c->open_word;
    c->open_given_up = *given_up;
    if (*given_up)
        pthread_detach(c->helper);
    hf__mutex_unlock(&c->mu);
    if (*given_up) {
        hf__fail(err, HF_EBACKEND, "%s took longer than %s", what,
                 hf__span(ms).text);
        if (err)
            err->may_pass = may_pass;
        return HF_EBACKEND;
    }
    if (!c->open_result)
        return 0;
    pthread_join(c->helper, NULL);
    return hf__fail_why(c, err, c->open_result);
}

int hf__helper_start(hf_client *c, hf__time until, hf_error *err,
                     bool *given_up)
{
    sigset_t all, old;
    int rc;

    *given_up = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&c->helper, NULL, helper_main, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return hf__fail(err, HF_ENOMEM, "no thread could be made");
    return helper_wait_open(c, until, err, given_up);
}

void hf__helper_stop(hf_client *c)
{
    hf__mutex_lock(&c->mu);
    c->helper_stop = true;
    c->helper_until = HF__NEVER;
    hf__helper_due_locked(c, 0);
    hf__mutex_unlock(&c->mu);
    pthread_join(c->helper, NULL);
}
