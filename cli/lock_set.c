#include "lock_set.h"

#include "base/text.h"
#include "base/time.h"
#include "client.h"
#include "mismatch.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/values.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The message and the exit status for the case that the server never answers
 * the last requests; see lock_set_leave_after(). */
static struct {
    char words[1024];
    int status;
} last;

static void lock_set_leave(int number)
{
    (void)number;
    if (write(STDERR_FILENO, last.words, strlen(last.words)) < 0) {
        /* Nothing more can be done: the process ends without a message. */
    }
    if (server_wait_caught)
        cli_die_of(server_wait_caught);
    _exit(last.status);
}

static void lock_set_leave_after(int ms, int status, const char *words)
{
    struct itimerval never = {0},
                     time = {.it_value = {ms / 1000, ms % 1000 * 1000}};

    setitimer(ITIMER_REAL, &never, NULL);
    last.status = status;
    snprintf(last.words, sizeof last.words, "%s", words);
    setitimer(ITIMER_REAL, &time, NULL);
}

/* Sets an alarm that ends the process with this status and message after a
 * second, if the process still runs then. */
static void lock_set_leave_soon(int status, const char *words)
{
    lock_set_leave_after(1000, status, words);
}

/* Lets the alarm of lock_set_leave_after() end this process. */
static void lock_set_hear_alarm(void)
{
    struct sigaction end = {.sa_handler = lock_set_leave};
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &end, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
}

/* Restores the signal mask that this process had at its start. From here on a
 * signal may end the process at once: the process only waits for the server,
 * which itself removes what a dead client leaves behind. */
static void lock_set_hear_signals(const struct lock_set *c)
{
    sigset_t mask = c->mask;

    lock_set_hear_alarm();
    sigdelset(&mask, SIGALRM);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* Returns the name of the lock that a text of the library is about, or NULL if
 * the text contains none of the names. */
static const char *lock_set_named(const struct lock_options *w,
                                  const char *text)
{
    for (size_t i = 0; i < w->len; i++) {
        struct hf__shown name = hf__show(w->names[i]);
        char quoted[sizeof name.text + 2];

        snprintf(quoted, sizeof quoted, "\"%s\"", name.text);
        if (strstr(text, quoted))
            return w->names[i];
    }
    return NULL;
}

/* Prints the error, and the lock's name before it unless the error contains a
 * name. Returns the exit status. */
static int lock_set_failed(const struct lock_options *w, int rc,
                           const hf_error *err)
{
    if (err && (lock_set_named(w, err->text) || !hf__show(w->names[0]).text[0]))
        cli_say(w->verb, "%s", err->text);
    else
        cli_failed(w->verb, hf__show(w->names[0]).text, rc, err);
    if (rc == HF_EMISMATCH &&
        !(err && (strstr(err->text, "dialect=") ||
                  strstr(err->text, "other than a lock"))))
        cli_say(w->verb, "all clients of a name must use it as the same kind "
                         "of lock: with -s or -x, with --of and the same "
                         "number, or without them");
    return cli_exit_of(rc);
}

/* Prints why a lock was refused, and returns the exit status. If the name is in
 * use as another kind of lock, also prints that kind, if the server reports
 * it. */
static int lock_set_refused(const struct lock_set *c, int rc,
                            const hf_error *err)
{
    const struct lock_options *w = c->options;
    const char *name = lock_set_named(w, err->text);

    if (rc == HF_EMISMATCH &&
        mismatch_say(w, c->client, name ? name : w->names[0]))
        return cli_exit_of(rc);
    return lock_set_failed(w, rc, err);
}

/* Describes the first holder, or "another client" if the holder is not known.
 * Returns the result of hf_inspect(). */
static int lock_set_describe_holder(hf_client *client, const char *name,
                                    struct cli_party *who)
{
    hf_info *info = NULL;
    int rc = hf_inspect(client, name, HF_CSTRING, &info, NULL);

    *who = (struct cli_party){"another client"};
    if (rc == HF_OK && info->holders_len > 0)
        *who = cli_party(info->holders);
    hf_info_free(info);
    return rc;
}

/* Prints that the lock was not acquired, for a backend that cannot say who
 * holds the lock; the lock may not be held at all. */
static int lock_set_say_not_acquired(const struct lock_options *w,
                                     const char *name, const hf_error *err)
{
    if (strstr(err->text, "; cause: ")) {
        cli_say(w->verb, "%s", err->text);
        return CLI_UNAVAILABLE;
    }
    if (w->wait_ms > 0)
        cli_say(w->verb,
                "%s: not acquired within %s; the servers cannot say who "
                "holds it",
                hf__show(name).text, hf__span(w->wait_ms).text);
    else
        cli_say(w->verb,
                "%s: not acquired; the servers cannot say who holds it",
                hf__show(name).text);
    return w->busy_exit;
}

/* Prints that the wait for the server has ended. The reason was printed when
 * that wait began. */
static int lock_set_say_no_server(const struct lock_options *w, int rc)
{
    cli_say(w->verb, "%s: not acquired within %s: the server cannot be used",
            hf__show(w->names[0]).text, hf__span(w->wait_ms).text);
    return cli_exit_of(rc);
}

/* Prints why a wait ended without the lock, and returns the exit status. The
 * server may have stopped answering during the wait, unnoticed by the client. A
 * timer therefore limits the request that finds out the holder. */
static int lock_set_not_acquired(struct lock_set *c, int rc,
                                 const hf_error *err)
{
    const struct lock_options *w = c->options;
    const char *name = lock_set_named(w, err->text);
    char words[sizeof last.words];
    struct cli_party who;
    int asked;

    if (server_wait_caught)
        return w->busy_exit;
    if (server_wait_has_reported(&c->server_wait, err))
        return lock_set_say_no_server(w, rc);
    if (rc != HF_EBUSY && rc != HF_ETIMEDOUT)
        return lock_set_refused(c, rc, err);
    if (rc == HF_EBUSY && w->quiet)
        return w->busy_exit;
    name = name ? name : w->names[0];
    snprintf(words, sizeof words, "holdfast %s: %s%s\n", w->verb->name,
             err->text,
             rc == HF_EBUSY ? "" : "; the server does not say who holds it");
    lock_set_leave_soon(rc == HF_EBUSY ? w->busy_exit : CLI_UNAVAILABLE, words);
    asked = lock_set_describe_holder(c->client, name, &who);
    if (asked == HF_EUNKNOWN || asked == HF_EBACKEND)
        lock_set_leave(0);
    lock_set_leave_soon(w->busy_exit, "");
    if (w->quiet)
        return w->busy_exit;
    if (asked == HF_ENOTSUP)
        return lock_set_say_not_acquired(w, name, err);
    if (w->wait_ms > 0)
        cli_say(w->verb, "%s: not acquired within %s; it is held by %s",
                hf__show(name).text, hf__span(w->wait_ms).text, who.text);
    else
        cli_say(w->verb, "%s: held by %s", hf__show(name).text, who.text);
    return w->busy_exit;
}

static int lock_set_say_nested(const struct lock_set *c)
{
    cli_say(c->options->verb,
            "%s: process %ld, which runs this command, holds it%s: a wait "
            "would never end",
            hf__show(c->nested.name).text, (long)c->nested.pid,
            c->nested.may_share ? ", and a writer waits for it" : "");
    return CLI_USAGE;
}

static int make_locks(struct lock_set *c)
{
    const struct lock_options *w = c->options;
    hf_lock_options how = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;

    how.kind = w->kind;
    how.fairness = w->fairness;
    how.permits = w->of;
    /* The owner is the handle and not the thread, because the thread of
     * wait_message.c uses the handle, too. */
    how.flags = HF_OWNER_HANDLE;
    c->held.options = w;
    c->held.client = c->client;
    for (size_t i = 0; i < w->len; i++) {
        hf_part *part = &c->held.parts[i];
        int rc = hf_lock_new(c->client, w->names[i], HF_CSTRING, &how,
                             &part->lock, &err);

        if (rc != HF_OK)
            return lock_set_refused(c, rc, &err);
        part->mode = w->mode;
        part->permits = w->permits;
        c->held.len++;
    }
    return CLI_OK;
}

static bool acquire_lock_set(struct lock_set *c, int *status)
{
    hf_error err = HF_ERROR_INIT;
    int rc;

    c->server_wait.only_try = c->nested.name != NULL;
    c->message.held = &c->held;
    c->message.client = c->client;
    c->message.begun_at = c->server_wait.begun_at;
    rc = server_wait_acquire(&c->server_wait, &c->held, &c->message, &err);
    if (rc == HF_OK && !server_wait_caught)
        return true;
    lock_set_hear_signals(c);
    lock_set_leave_soon(CLI_BUSY, "");
    if (rc == HF_OK)
        *status = lock_set_release(c, CLI_BUSY, false);
    else if (rc == HF_EBUSY && c->nested.name && c->options->wait_ms != 0)
        *status = lock_set_say_nested(c);
    else
        *status = lock_set_not_acquired(c, rc, &err);
    /* hf_close() sends the server one more request, which takes this client out
     * of the queue. If a signal ended the wait and the last request failed,
     * this request will probably fail, too, so hf_close() gets less time. */
    lock_set_leave_after(server_wait_caught && rc == HF_EBACKEND ? 100 : 1000,
                         *status, "");
    return false;
}

/* Prints that another client asks for the lock. That client must not be able to
 * block this process, so nothing is written to a stopped terminal or a full
 * pipe. */
static void lock_set_on_event(void *arg, const hf_event *event)
{
    struct pollfd out = {STDERR_FILENO, POLLOUT, 0};
    const struct lock_options *w = arg;
    char name[HF_NAME_MAX + 1];

    if (event->type != HF_EVENT_WANTED || w->quiet || poll(&out, 1, 0) != 1)
        return;
    snprintf(name, sizeof name, "%.*s", (int)event->name_len, event->name);
    cli_say(w->verb, "%s: another client asks for the lock (holdfast ask)",
            hf__show(name).text);
}

bool lock_set_acquire(struct lock_set *c, int *status)
{
    const struct lock_options *w = c->options;
    const char *url = cli_url(w->url);
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    int rc;

    c->server_wait = (struct server_wait){
        .options = w, .begun_at = cli_now_ns(CLOCK_BOOTTIME)};
    options.ttl_ms = w->ttl_ms;
    options.label = w->label;
    options.on_event = lock_set_on_event;
    options.event_arg = (void *)w;
    rc = server_wait_open(&c->server_wait, url, &options, &c->client, &err);
    *status = CLI_OK;
    if (rc == HF_OK && !c->nested.name)
        nested_inspect(&c->nested, w, c->client);
    if (rc == HF_OK && c->nested.name && !nested_is_held(&c->nested, c->client))
        c->nested.name = NULL;
    if (rc != HF_OK && server_wait_has_reported(&c->server_wait, &err))
        *status = lock_set_say_no_server(w, rc);
    else if (rc != HF_OK)
        *status = cli_cannot_open(w->verb, url, rc, &err);
    else if (c->nested.name && !c->nested.may_share)
        *status = lock_set_say_nested(c);
    else
        *status = make_locks(c);
    return *status == CLI_OK && acquire_lock_set(c, status);
}

/* Prints why the release failed. Leaves out the library's promise to try again
 * in the background, because this process ends before that. */
static void lock_set_say_unreleased(const struct lock_options *w, int rc,
                                    hf_error *err)
{
    static const char promise[] = "; it is tried again in the background";
    char *at = strstr(err->text, promise);

    if (at)
        memmove(at, at + strlen(promise), strlen(at + strlen(promise)) + 1);
    lock_set_failed(w, rc, err);
    if (rc != HF_ELOST)
        cli_say(w->verb,
                "the lock is free when its ttl has passed, at the latest");
}

int lock_set_release(struct lock_set *c, int status, bool only_warn)
{
    hf_error err = HF_ERROR_INIT;
    int rc = c->held.len == 1
                 ? hf_lock_release(c->held.parts[0].lock, &err)
                 : hf_lock_release_all(c->held.parts, c->held.len, &err);

    if (rc == HF_OK)
        return status;
    lock_set_say_unreleased(c->options, rc, &err);
    if (rc == HF_ELOST)
        return only_warn ? status : CLI_LOST;
    if (rc == HF_EUNKNOWN) {
        /* The release has already waited for the server's answer, so hf_close()
         * must not wait as long again. */
        lock_set_hear_alarm();
        lock_set_leave_after(100, status, "");
    }
    return status;
}

void lock_set_close(struct lock_set *c)
{
    for (size_t i = 0; i < c->held.len; i++)
        hf_lock_free(c->held.parts[i].lock);
    hf_close(c->client);
    wait_message_join(&c->message);
}
