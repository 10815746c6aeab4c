/*
 * Inspects the lock in a separate thread. During a short wait nothing is
 * printed. After that, one line says who holds the lock, or that the backend
 * cannot say. Then the thread ends, unless standard error is a terminal: there
 * the thread updates a live line every second, and its requests to the server
 * become less frequent.
 *
 * Every signal is blocked in the thread, because the waiting thread handles
 * them.
 */
#include "wait_message.h"

#include "base/text.h"
#include "client.h"
#include "lock_print.h"
#include "shared/message.h"
#include "shared/screen.h"
#include "shared/values.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SILENT_MS = 150, TICK_MS = 1000, INSPECT_MAX_S = 4 };

/* What the live line shows. */
struct view {
    struct cli_party holder; /* "": not known */
    size_t place, of;        /* position in the queue, from 1, and its length;
                                0: not known */
};

/* Returns the name of the lock that is acquired next, or NULL if all are
 * held. */
static const char *message_blocking(const struct held_locks *held)
{
    const char *first = NULL;

    for (size_t i = 0; i < held->len; i++) {
        const char *name = held->options->names[i];

        if (hf_lock_check(held->parts[i].lock) != HF_OK &&
            (!first || strcmp(name, first) < 0))
            first = name;
    }
    return first;
}

static bool message_is_us(const hf_party *p)
{
    return p->pid == getpid() && cli_is_here(p);
}

static void message_say_holder(struct wait_message *w, const char *name,
                               const hf_info *info)
{
    const hf_party *p = info->holders;
    char others[64] = "";

    if (info->holders_len > 1)
        snprintf(others, sizeof others, "; %zu other%s, too",
                 info->holders_len - 1,
                 info->holders_len > 2 ? "s hold it" : " holds it");
    struct lock_age age = lock_age_since(p->since_unix_ms);

    if (strcmp(age.text, "0s") == 0)
        cli_say(w->held->options->verb,
                "%s: waiting; %s has just acquired it%s", hf__show(name).text,
                cli_party(p).text, others);
    else if (age.text[0])
        cli_say(w->held->options->verb, "%s: waiting; %s has held it for %s%s",
                hf__show(name).text, cli_party(p).text, age.text, others);
    else
        cli_say(w->held->options->verb, "%s: waiting; %s holds it%s",
                hf__show(name).text, cli_party(p).text, others);
    w->said = true;
}

static void message_say_unknown(struct wait_message *w, const char *name)
{
    cli_say(w->held->options->verb,
            "%s: waiting; the servers cannot say who holds it",
            hf__show(name).text);
    w->said = true;
}

static void message_find_place(struct view *view, const hf_info *info)
{
    view->place = 0;
    view->of = info->waiters_len;
    for (size_t i = 0; i < info->waiters_len && !view->place; i++)
        if (message_is_us(&info->waiters[i]))
            view->place = i + 1;
    /* An unfair queue has no places. */
    if (info->fairness == HF_UNFAIR)
        view->place = 0;
}

static void message_show(const struct wait_message *w, const char *name,
                         const struct view *view)
{
    int64_t ms = (cli_now_ns(CLOCK_BOOTTIME) - w->begun_at) / 1000000;
    char place[64] = "";

    if (view->place)
        snprintf(place, sizeof place, ", place %zu of %zu", view->place,
                 view->of);
    cli_live("%s: waiting for %s%s%s%s", hf__show(name).text, lock_age(ms).text,
             place, view->holder.text[0] ? "; held by " : "",
             view->holder.text);
}

/* Inspects the lock and fills in *view. Called with w->mu locked; unlocks it
 * during the request to the server. */
static void message_inspect(struct wait_message *w, const char *name,
                            struct view *view)
{
    hf_info *info = NULL;
    int rc;

    pthread_mutex_unlock(&w->mu);
    rc = hf_inspect(w->client, name, HF_CSTRING, &info, NULL);
    pthread_mutex_lock(&w->mu);
    *view = (struct view){.place = 0};
    if (rc == HF_OK) {
        message_find_place(view, info);
        if (info->holders_len > 0 && !message_is_us(info->holders)) {
            view->holder = cli_party(info->holders);
            if (!w->said && w->active && !w->over)
                message_say_holder(w, name, info);
        }
    }
    if (rc == HF_ENOTSUP) {
        w->inspect_after_s = -1;
        if (!w->said && w->active && !w->over)
            message_say_unknown(w, name);
    }
    hf_info_free(info);
}

/* Sleeps. Called with w->mu locked. Returns false if the wait is over. */
static bool message_rest(struct wait_message *w, int64_t ms)
{
    int64_t until = cli_now_ns(CLOCK_MONOTONIC) + ms * 1000000;
    struct timespec at = {until / 1000000000, until % 1000000000};

    while (!w->over && cli_now_ns(CLOCK_MONOTONIC) < until)
        pthread_cond_timedwait(&w->changed, &w->mu, &at);
    return !w->over;
}

static void *message_report(void *arg)
{
    struct wait_message *w = arg;
    struct view view = {.place = 0};
    int ticks = 0;

    pthread_mutex_lock(&w->mu);
    /* Many processes may begin to wait at the same moment, and must not all
     * send requests at once. The first sleep therefore depends on the pid. */
    for (int64_t ms = SILENT_MS + getpid() % 16 * 20; message_rest(w, ms);
         ms = TICK_MS) {
        const char *name = message_blocking(w->held);

        if (!w->active || !name)
            continue;
        if (w->inspect_after_s >= 0 && ticks-- <= 0) {
            message_inspect(w, name, &view);
            ticks = w->inspect_after_s;
            if (w->inspect_after_s >= 0 && w->inspect_after_s < INSPECT_MAX_S)
                w->inspect_after_s++;
        }
        if (!cli_is_live() && (w->said || w->inspect_after_s < 0))
            break;
        if (w->active && !w->over)
            message_show(w, name, &view);
    }
    pthread_mutex_unlock(&w->mu);
    return NULL;
}

static void message_begin_thread(struct wait_message *w)
{
    pthread_condattr_t attr;
    sigset_t all, before;

    pthread_mutex_init(&w->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    w->active = true;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    w->started = pthread_create(&w->thread, NULL, message_report, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void wait_message_begin(struct wait_message *w)
{
    if (w->held->options->quiet || w->held->options->wait_ms == 0)
        return;
    if (!w->started) {
        message_begin_thread(w);
        return;
    }
    pthread_mutex_lock(&w->mu);
    w->active = true;
    pthread_mutex_unlock(&w->mu);
}

void wait_message_pause(struct wait_message *w)
{
    if (!w->started)
        return;
    pthread_mutex_lock(&w->mu);
    w->active = false;
    cli_live(NULL);
    pthread_mutex_unlock(&w->mu);
}

void wait_message_end(struct wait_message *w)
{
    if (!w->started)
        return;
    wait_message_pause(w);
    pthread_mutex_lock(&w->mu);
    w->over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mu);
}

void wait_message_join(struct wait_message *w)
{
    if (w->started)
        pthread_join(w->thread, NULL);
    w->started = false;
}
