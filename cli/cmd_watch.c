/*
 * holdfast watch: prints each change of a lock, or of the locks whose names
 * begin with a prefix.
 *
 * If the backend reports changes, hf_watch_new() passes them on; otherwise the
 * names are polled. A report says only that something may have changed: the
 * name is marked, then inspected, and its state is printed if it differs from
 * the last state. Even where the backend reports changes, names are also
 * inspected at intervals, because some changes are not reported, such as a
 * FLUSHALL of Redis.
 */
#include "client.h"
#include "json.h"
#include "lock_error.h"
#include "lock_print.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/screen.h"
#include "shared/values.h"
#include "shared/verb.h"
#include "verbs.h"

#include <errno.h>
#include <getopt.h>
#include <holdfast.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL

enum { POLL_MS = 500, REPEAT_MS = 5000, INTERVAL_MIN_MS = 10 };

struct options {
    const char *url, *name; /* the name; or the prefix, "" for all names */
    uint64_t count;         /* how many changes to print; 0: no limit */
    int64_t wait_ms;        /* -1: no limit */
    int64_t interval_ms;    /* 0: the default */
    bool is_prefix, quiet, json;
};

static const struct cli_flag flags[] = {
    CLI_FLAG_BACKEND,
    {'p', "prefix", NULL,
     "watch all names that begin with PREFIX; without it, all names"},
    {'n', "count", "COUNT", "exit after COUNT changes"},
    {'w', "wait", "DURATION", "exit after this time"},
    {'w', "timeout", "DURATION", NULL},
    {'i', "interval", "DURATION",
     "how often to inspect (500ms; 5s if the backend announces changes)"},
    {'q', "quiet", NULL,
     "print no messages about polling or a lost connection"},
    {CLI_JSON, "json", NULL, "print a JSON object per change, one per line"},
    CLI_FLAG_END,
};

struct lock {
    struct lock *next;
    hf_info *last; /* the state that was printed; NULL: none yet */
    bool changed;  /* the state may have changed since then */
    size_t len;
    char name[];
};

struct follow {
    const struct options *o;
    hf_client *client;
    hf_watch *watch; /* NULL: polling */
    struct lock *locks;
    bool relist;     /* with a prefix: there may be new names */
    bool is_started; /* the first state is printed */
    bool is_down;    /* the server does not answer */
    bool is_closed;  /* standard output has no reader */
    bool is_failed;  /* writing to standard output has failed; a message was
                        printed */
    uint64_t changes;
    int64_t poll_at, ends_at; /* CLOCK_BOOTTIME */
    int64_t list_at; /* the earliest time to list again, if relist is set */
};

static int watch_compare_names(const struct lock *l, const char *name,
                               size_t len)
{
    int order = memcmp(l->name, name, l->len < len ? l->len : len);

    return order ? order : (l->len > len) - (l->len < len);
}

/* Returns the place of the name in the list, or the place where it must be
 * inserted. Searches from `at' on. The list is in the order of the names'
 * bytes, like the result of hf_list(). So one pass through the list finds all
 * names of that result. */
static struct lock **watch_place_of(struct lock **at, const char *name,
                                    size_t len)
{
    while (*at && watch_compare_names(*at, name, len) < 0)
        at = &(*at)->next;
    return at;
}

static struct lock *watch_find(struct lock **at, const char *name, size_t len)
{
    struct lock *l = *at;

    if (l && watch_compare_names(l, name, len) == 0)
        return l;
    l = calloc(1, sizeof *l + len + 1);
    if (!l)
        return NULL;
    memcpy(l->name, name, len);
    l->len = len;
    l->next = *at;
    *at = l;
    return l;
}

static struct lock *watch_find_one(struct follow *f, const char *name,
                                   size_t len)
{
    return watch_find(watch_place_of(&f->locks, name, len), name, len);
}

static void watch_forget(struct lock **at)
{
    struct lock *l = *at;

    *at = l->next;
    hf_info_free(l->last);
    free(l);
}

static void watch_mark_all(struct follow *f)
{
    for (struct lock *l = f->locks; l; l = l->next)
        l->changed = true;
}

static bool watch_is_same_party(const hf_party *a, const hf_party *b)
{
    return strcmp(a->owner, b->owner) == 0 && a->token == b->token &&
           a->mode == b->mode && a->permits == b->permits;
}

/* Returns whether both lists have the same parties, in any order. The order is
 * not compared: that of a fair queue does not change, and an unfair queue has
 * none. */
static bool watch_are_same(const hf_party *a, size_t a_len, const hf_party *b,
                           size_t b_len)
{
    if (a_len != b_len)
        return false;
    for (size_t i = 0; i < a_len; i++) {
        size_t j = 0;

        if (watch_is_same_party(&a[i], &b[i]))
            continue;
        while (j < b_len && !watch_is_same_party(&a[i], &b[j]))
            j++;
        if (j == b_len)
            return false;
    }
    return true;
}

/* Returns the name of the event that led from `before' to `now', or NULL if
 * they do not differ. For the first state, `before' is NULL. */
static const char *watch_change(const hf_info *before, const hf_info *now)
{
    if (!before)
        return "initial";
    if (before->count != now->count)
        return "count";
    if (!watch_are_same(before->holders, before->holders_len, now->holders,
                        now->holders_len))
        return now->holders_len < before->holders_len ? "released" : "acquired";
    if (!watch_are_same(before->waiters, before->waiters_len, now->waiters,
                        now->waiters_len))
        return "queue";
    return NULL;
}

static void watch_print_json(const struct lock *l, const char *event,
                             const hf_info *info)
{
    int64_t ms = cli_now_ns(CLOCK_REALTIME) / MS;
    time_t s = (time_t)(ms / 1000);
    char text[40], when[24];
    struct tm parts;

    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &parts));
    snprintf(text, sizeof text, "%s.%03dZ", when, (int)(ms % 1000));
    json_open(NULL, '{');
    json_text("time", text);
    json_text("event", event);
    lock_print_json(l->name, l->len, info);
    json_close('}');
    json_end();
}

static void watch_print_line(const struct lock *l, const hf_info *info)
{
    time_t s = (time_t)(cli_now_ns(CLOCK_REALTIME) / (1000 * MS));
    struct tm parts;
    char when[24];

    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&s, &parts));
    printf("%s%s%s ", cli_colour(CLI_DIM), when, cli_colour(CLI_PLAIN));
    cli_print_bytes(stdout, l->name, l->len);
    fputs(": ", stdout);
    lock_print_state(stdout, info);
    putchar('\n');
}

static void watch_print_change(struct follow *f, const struct lock *l,
                               const char *event, const hf_info *info)
{
    if (f->o->json)
        watch_print_json(l, event, info);
    else
        watch_print_line(l, info);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            cli_say(&cli_watch, "standard output: %s", strerror(errno));
        f->is_failed = errno != EPIPE;
        f->is_closed = true;
    }
    if (f->is_started)
        f->changes++;
}

static void watch_say_down(struct follow *f, const char *why)
{
    if (!f->is_down && !f->o->quiet)
        cli_say(&cli_watch,
                "%s; changes are not seen until the server answers again", why);
    f->is_down = true;
}

static void watch_say_up(struct follow *f)
{
    if (f->is_down && !f->o->quiet)
        cli_say(&cli_watch, "the server answers again");
    f->is_down = false;
}

static bool watch_is_over(const struct follow *f)
{
    return f->is_closed || (f->o->count && f->changes >= f->o->count);
}

/* Handles the failure of an inspection, or of a request for the list of names.
 * If the failure may pass, prints a message and returns HF_OK, so that the next
 * poll tries again. Otherwise returns `rc'. */
static int watch_failed(struct follow *f, int rc, hf_error *err)
{
    if (rc != HF_EUNKNOWN && !(rc == HF_EBACKEND && err->may_pass))
        return rc;
    watch_say_down(f, err->text);
    return HF_OK;
}

/* Prints the change, if there is one. Takes ownership of info. */
static void watch_compare(struct follow *f, struct lock *l, hf_info *info)
{
    const char *event = watch_change(l->last, info);

    /* With a prefix, a name that has no last state is new in the list. If the
     * name is not in use, nothing is printed. If it is in use, and the states
     * of the first list have been printed (is_started), the name has come into
     * use since then. */
    if (!l->last && f->o->is_prefix) {
        if (!lock_is_used(info))
            event = NULL;
        else if (f->is_started)
            event = info->kind == HF_LATCH  ? "count"
                    : info->holders_len > 0 ? "acquired"
                                            : "queue";
    }
    if (event)
        watch_print_change(f, l, event, info);
    hf_info_free(l->last);
    l->last = info;
}

/* Inspects a name. With a prefix, skips a key of the server that is not a
 * lock. */
static int watch_inspect(struct follow *f, struct lock *l, hf_error *err)
{
    hf_info *info = NULL;
    int rc = hf_inspect(f->client, l->name, l->len, &info, err);

    if (rc == HF_EMISMATCH && f->o->is_prefix)
        return HF_OK;
    if (rc != HF_OK)
        return rc;
    watch_say_up(f);
    watch_compare(f, l, info);
    return HF_OK;
}

static int watch_inspect_changed(struct follow *f, hf_error *err)
{
    struct lock **at = &f->locks, *l;
    int rc;

    while ((l = *at) && !watch_is_over(f)) {
        if (l->changed) {
            l->changed = false;
            rc = watch_inspect(f, l, err);
            if (rc != HF_OK) {
                l->changed = true;
                return rc;
            }
        }
        if (f->o->is_prefix && !l->changed &&
            (!l->last || !lock_is_used(l->last)))
            watch_forget(at);
        else
            at = &l->next;
    }
    return HF_OK;
}

/* Returns the end of the pause that follows a request for the list of names, or
 * an inspection of all names. Both are costly for the server, so the pause is
 * four times as long as the time since begun_at. */
static int64_t watch_after_rest(int64_t begun_at)
{
    int64_t now = cli_now_ns(CLOCK_BOOTTIME);

    return now + 4 * (now - begun_at);
}

static int watch_list(struct follow *f, hf_error *err)
{
    int64_t begun_at = cli_now_ns(CLOCK_BOOTTIME);
    struct lock **at = &f->locks;
    hf_names *names = NULL;
    int rc = hf_list(f->client, f->o->name, &names, err);

    if (rc != HF_OK)
        return rc;
    f->list_at = watch_after_rest(begun_at);
    watch_say_up(f);
    watch_mark_all(f);
    for (size_t i = 0; i < names->len; i++) {
        const struct hf_name *n = &names->names[i];
        struct lock *l;

        at = watch_place_of(at, n->bytes, n->len);
        l = watch_find(at, n->bytes, n->len);
        if (!l) {
            hf_names_free(names);
            return HF_ENOMEM;
        }
        l->changed = true;
    }
    hf_names_free(names);
    f->relist = false;
    return HF_OK;
}

static int watch_inspect_all(struct follow *f, hf_error *err)
{
    bool is_due = f->relist && cli_now_ns(CLOCK_BOOTTIME) >= f->list_at;
    int rc = is_due ? watch_list(f, err) : HF_OK;

    return rc == HF_OK ? watch_inspect_changed(f, err) : rc;
}

static void watch_on_change(void *arg, hf_watch *watch, const char *name,
                            size_t len)
{
    struct follow *f = arg;
    struct lock *l = name ? watch_find_one(f, name, len) : NULL;

    (void)watch;
    if (l)
        l->changed = true;
    else
        f->relist = f->o->is_prefix;
}

/* When the connection is up again, marks all names, because changes may have
 * been missed while it was down. */
static void watch_on_event(void *arg, const hf_event *event)
{
    struct follow *f = arg;

    if (event->type == HF_EVENT_DOWN)
        watch_say_down(f, "the connection to the server is lost");
    if (event->type != HF_EVENT_UP)
        return;
    watch_say_up(f);
    watch_mark_all(f);
    f->relist = f->o->is_prefix;
}

static int64_t watch_interval_ns(const struct follow *f)
{
    if (f->o->interval_ms)
        return f->o->interval_ms * MS;
    return (f->watch ? REPEAT_MS : POLL_MS) * MS;
}

/* Sets the time of the next poll: after the interval, but not before the pause
 * of watch_after_rest() has ended. */
static void watch_set_next_poll(struct follow *f, int64_t begun_at)
{
    int64_t rested_at = watch_after_rest(begun_at);

    f->poll_at = cli_now_ns(CLOCK_BOOTTIME) + watch_interval_ns(f);
    if (rested_at > f->poll_at)
        f->poll_at = rested_at;
}

static void watch_poll_is_due(struct follow *f)
{
    watch_mark_all(f);
    if (f->o->is_prefix && (!f->watch || f->is_down))
        f->relist = true;
}

/* Sleeps until something may have changed, or until the next poll, the next
 * list or the end is due. */
static void watch_wait_for_news(struct follow *f)
{
    int64_t at = f->poll_at < f->ends_at ? f->poll_at : f->ends_at, ms;
    struct pollfd polled[2] = {{hf_client_fd(f->client), POLLIN, 0},
                               {STDOUT_FILENO, 0, 0}};

    if (f->relist && !f->is_down && f->list_at < at)
        at = f->list_at;
    ms = (at - cli_now_ns(CLOCK_BOOTTIME)) / MS + 1;
    poll(polled, 2, ms < 0 ? 0 : ms < 60000 ? (int)ms : 60000);
    if (polled[1].revents & (POLLERR | POLLHUP))
        f->is_closed = true; /* the pipe has no reader, or the terminal was
                                closed */
    if (polled[0].revents)
        hf_client_dispatch(f->client);
}

static int watch_loop(struct follow *f, hf_error *err)
{
    while (!watch_is_over(f)) {
        int64_t now;
        int rc;

        watch_wait_for_news(f);
        now = cli_now_ns(CLOCK_BOOTTIME);
        if (now >= f->ends_at)
            return f->o->count ? HF_ETIMEDOUT : HF_OK;
        if (now >= f->poll_at)
            watch_poll_is_due(f);
        rc = f->is_closed ? HF_OK : watch_inspect_all(f, err);
        /* After a failed inspection, which cost the server little, the next
         * poll waits only for the interval, without an additional pause. */
        if (now >= f->poll_at)
            watch_set_next_poll(f,
                                rc == HF_OK ? now : cli_now_ns(CLOCK_BOOTTIME));
        if (rc != HF_OK)
            rc = watch_failed(f, rc, err);
        if (rc != HF_OK)
            return rc;
    }
    return HF_OK;
}

/* If the backend cannot report changes, or not to this user, returns HF_OK with
 * f->watch NULL, and err says why; names must then be polled. */
static int watch_begin(struct follow *f, hf_error *err)
{
    const struct options *o = f->o;
    int rc = hf_watch_new(f->client, o->name, HF_CSTRING,
                          o->is_prefix ? HF_WATCH_PREFIX : 0, watch_on_change,
                          f, &f->watch, err);
    struct lock *l;

    f->relist = o->is_prefix;
    if (rc == HF_ENOTSUP || rc == HF_EAUTH)
        rc = HF_OK;
    if (rc != HF_OK || o->is_prefix)
        return rc;
    l = watch_find_one(f, o->name, strlen(o->name));
    if (!l)
        return HF_ENOMEM;
    l->changed = true;
    return HF_OK;
}

static int watch_follow(struct follow *f, hf_error *err)
{
    hf_error why = HF_ERROR_INIT;
    int64_t now = cli_now_ns(CLOCK_BOOTTIME);
    int rc = watch_begin(f, &why);

    f->ends_at = f->o->wait_ms < 0 ? HF_NO_DEADLINE : now + f->o->wait_ms * MS;
    if (rc != HF_OK)
        *err = why;
    else
        rc = watch_inspect_all(f, err);
    if (rc == HF_OK && !f->watch && !f->o->quiet)
        cli_say(&cli_watch, "%s; polling every %lld ms", why.text,
                (long long)(watch_interval_ns(f) / MS));
    if (rc != HF_OK)
        return rc;
    f->is_started = true;
    watch_set_next_poll(f, now);
    return watch_loop(f, err);
}

static int watch_run(const struct options *o)
{
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    struct follow f = {.o = o};
    hf_error err = HF_ERROR_INIT;
    int rc, status;

    options.on_event = watch_on_event;
    options.event_arg = &f;
    status = cli_open_with(&cli_watch, o->url, &options, &f.client);
    if (status != CLI_OK)
        return status;
    rc = watch_follow(&f, &err);
    if (f.is_closed) /* exit() would try again to write to standard output */
        _exit(f.is_failed ? CLI_FAILED : CLI_OK);
    hf_watch_free(f.watch);
    while (f.locks)
        watch_forget(&f.locks);
    hf_close(f.client);
    if (rc == HF_ETIMEDOUT)
        return CLI_BUSY;
    return rc == HF_OK ? CLI_OK
                       : cli_lock_failed(&cli_watch, o->url, o->name, rc, &err);
}

static int watch_take_option(struct options *o, int option)
{
    switch (option) {
    case 'b':
        o->url = optarg;
        return CLI_OK;
    case 'p':
        o->is_prefix = true;
        return CLI_OK;
    case 'n':
        if (cli_number(optarg, 1, UINT64_MAX, &o->count) == 0)
            return CLI_OK;
        return cli_misuse(&cli_watch,
                          "-n takes a number of at least 1, not `%s'", optarg);
    case 'w':
        return cli_duration(&cli_watch, "-w", optarg, 0, &o->wait_ms);
    case 'i':
        return cli_duration(&cli_watch, "-i", optarg, INTERVAL_MIN_MS,
                            &o->interval_ms);
    case 'q':
        o->quiet = true;
        return CLI_OK;
    case CLI_JSON:
        o->json = true;
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

static int watch_main(int argc, char **argv)
{
    struct options o = {.wait_ms = -1};
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_flag(&cli_watch, argc, argv)) != -1)
        status = watch_take_option(&o, option);
    if (status == CLI_OK)
        status = (o.is_prefix ? cli_prefix : cli_name)(
            &cli_watch, argc - optind, argv + optind, o.url, &o.name);
    if (status != CLI_OK)
        return status;
    o.name = o.name ? o.name : "";
    return watch_run(&o);
}

const struct cli_verb cli_watch = {
    .name = "watch",
    .summary = "prints each change of a lock",
    .synopsis = "watch [OPTION...] NAME\n"
                "watch [OPTION...] -p [PREFIX]",
    .about = "Prints the state of the lock NAME, then a line per change of its "
             "holders, of its queue, or of the count of a latch.",
    .flags = flags,
    .notes =
        "Exit status 75: the time of -w passed before the COUNT of -n was "
        "reached.\n"
        "\n"
        "  holdfast watch nightly\n"
        "  holdfast watch -b etcd://e1,e2,e3 -p jobs/ --json\n"
        "  holdfast watch -n 1 -w 10m nightly    waits for the next change\n",
    .operand = CLI_NAME,
    .main = watch_main,
};
