/*
 * One stream of watches for the whole client.
 *
 * A waiting lock watches only the entry before its own. A watch begins at the
 * current revision, because the server serves watches that begin in the past
 * only every 100 ms. The server confirms the watch with that revision. If the
 * lock has read the queue at a different revision, it reads the queue once
 * more.
 *
 * A lock keeps its last watches after it was granted: when the same clients
 * queue repeatedly, the same entry precedes ours each time, and is already
 * watched. An event of such a watch is remembered, because it may arrive before
 * the answer that makes the lock wait. Each event costs the server a message.
 * Therefore a watch is ended if it reports an event while its lock is RESTING
 * without an attempt, or if it has reported several events since its lock last
 * waited for it.
 *
 * The guard (etcd.h) is watched, too. It is deleted with the lease, so the
 * client is notified at once when another client revokes the lease.
 *
 * If the program listens to events, its client watches the one key to which
 * hf_ask writes. This watch begins at the revision after the last one that the
 * client has received, so that a lost connection loses no event.
 */
#include "watch.h"

#include "entry.h"
#include "etcd.h"
#include "exchange.h"
#include "lock_state.h"
#include "refusal.h"

#include <string.h>

#define IDLE_MOST 4           /* a watch whose `idle` exceeds this is ended */
#define PAUSE (1000 * HF__MS) /* after a stream or a watch was refused */

struct et_watch {
    struct hf__keyed key;       /* the id of the watch */
    struct et_lock *lock;       /* NULL if the watch is for changes.c, the guard
                                   or ask_key */
    struct et_changes *changes; /* the listener to report to; or NULL */
    const struct et_watch_events *events; /* callbacks for `changes` */
    struct et_watch **place; /* without a lock: where the pointer to this watch
                                is */
    int64_t id;
    int64_t revision; /* later events are reported; 0 if unconfirmed */
    int64_t reported; /* revision of the last event */
    unsigned idle;    /* events since the lock last waited for this watch */
    enum et_wait how;
    size_t len;
    char what[]; /* the key that is watched, and room for one more byte */
};

static int watch_message(struct grpc_call *, const uint8_t *, size_t, hf__time);

static int watch_over(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;

    hf__et_watches_down(e);
    e->watch_at = now + PAUSE;
    e->stream_at = c->at + PAUSE;
    return 0;
}

const struct grpc_method hf__et_watch = {.path = "/etcdserverpb.Watch/Watch",
                                         .is_stream = true,
                                         .most = ET_ANSWER,
                                         .message = watch_message,
                                         .over = watch_over};

/* Sends a message on the stream. Opens the stream first if needed, but only
 * once per PAUSE if the stream keeps failing. Returns false if the message was
 * not sent. */
static bool watch_say(struct etcd *e, const Etcd__Watch *m)
{
    bool is_open = !hf__grpc_is_idle(&e->watch);

    if (!is_open && e->core->now() < e->stream_at)
        return false;
    return hf__et_pack(&e->watch, m) == 0 &&
           (is_open || hf__grpc_start(&e->watch, 0) == 0);
}

/* ---- beginning and end --------------------------------------------------- */

static struct et_watch **watch_place_of(const struct et_watch *w)
{
    if (!w->lock)
        return w->place;
    if (w->lock->own == w)
        return &w->lock->own;
    return &w->lock->watch[w->lock->watch[0] != w];
}

static void watch_forget(struct etcd *e, struct et_watch *w)
{
    *watch_place_of(w) = NULL;
    hf__table_remove(&e->watches, w);
}

static void watch_cancel(struct etcd *e, struct et_watch *w)
{
    Etcd__Watch m = ETCD__WATCH__INIT;
    Etcd__WatchCancel c = ETCD__WATCH_CANCEL__INIT;

    c.watch_id = w->id;
    m.request_case = ETCD__WATCH__REQUEST_CANCEL;
    m.cancel = &c;
    if (!hf__grpc_is_idle(&e->watch))
        watch_say(e, &m);
    watch_forget(e, w);
}

/* Creates a watch with a new id. Ids are never used again, because the server
 * may still report events of an old watch. */
static struct et_watch *watch_new(struct etcd *e, struct et_lock *l,
                                  enum et_wait how, const char *what,
                                  size_t len)
{
    int64_t id = ++e->watch_ids;
    struct et_watch *w = hf__table_add(&e->watches, sizeof(*w) + len + 1, 0,
                                       (char *)&id, sizeof(id));

    if (!w)
        return NULL;
    memcpy(w->what, what, len);
    w->lock = l;
    w->how = how;
    w->id = id;
    w->len = len;
    return w;
}

static bool watch_begin(struct etcd *e, struct et_watch *w)
{
    static Etcd__WatchCreate__Filter no_puts[] = {
        ETCD__WATCH_CREATE__FILTER__NOPUT};
    Etcd__Watch m = ETCD__WATCH__INIT;
    Etcd__WatchCreate create = ETCD__WATCH_CREATE__INIT;
    char end[ET_KEY_MAX + 1];

    if (w->how == ET_BELOW || w->how == ET_ALL) {
        create.range_end.len = hf__et_prefix(w->what, &w->len, end);
    } else if (w->how == ET_PAIR) {
        memcpy(end, w->what, w->len);
        end[w->len] = ET_MARK + 1;
        create.range_end.len = w->len + 1;
    }
    create.range_end.data = (uint8_t *)end;
    create.key.data = (uint8_t *)w->what;
    create.key.len = w->len;
    create.watch_id = w->id;
    if (w == e->ask_watch)
        create.start_revision = e->heard + 1;
    create.n_filters = w->how == ET_GONE || w->how == ET_BELOW;
    create.filters = no_puts;
    m.request_case = ETCD__WATCH__REQUEST_CREATE;
    m.create = &create;
    return watch_say(e, &m);
}

/* Creates a watch that belongs to no lock. Sets *place, unless the watch cannot
 * be created. */
static void watch_alone(struct etcd *e, struct et_changes *changes,
                        struct et_watch **place, enum et_wait how,
                        const char *key, size_t len)
{
    struct et_watch *w = watch_new(e, NULL, how, key, len);

    if (!w)
        return;
    *place = w;
    w->changes = changes;
    w->place = place;
    if (!watch_begin(e, w))
        watch_forget(e, w);
}

/* ---- locks --------------------------------------------------------------- */

static bool watch_is_on(const struct et_watch *w, enum et_wait how,
                        const char *what, size_t len)
{
    return w->how == how && w->len == len && memcmp(w->what, what, len) == 0;
}

/* Returns the lock's watch of that key, after moving it to the front, or NULL
 * if the lock has none. */
static struct et_watch *watch_kept(struct et_lock *l, enum et_wait how,
                                   const char *what, size_t len)
{
    for (int i = 0; i < ET_WATCHES; i++) {
        struct et_watch *w = l->watch[i];

        if (!w || !watch_is_on(w, how, what, len))
            continue;
        l->watch[i] = l->watch[0];
        l->watch[0] = w;
        w->idle = 0;
        return w;
    }
    return NULL;
}

/* Creates a watch and puts it first. If the lock already had ET_WATCHES
 * watches, ends the last of them, for which the lock has waited least
 * recently. */
static struct et_watch *watch_add(struct et_lock *l, enum et_wait how,
                                  const char *what, size_t len)
{
    struct etcd *e = l->e;
    struct et_watch *w = watch_new(e, l, how, what, len);

    if (!w)
        return NULL;
    if (l->watch[ET_WATCHES - 1])
        watch_cancel(e, l->watch[ET_WATCHES - 1]);
    l->watch[1] = l->watch[0];
    l->watch[0] = w;
    if (!watch_begin(e, w)) {
        watch_forget(e, w);
        return NULL;
    }
    l->looks = 0;
    return w;
}

void hf__et_ring(struct et_lock *l)
{
    if (l->state == ET_QUEUED)
        l->state = ET_RUNG;
    l->e->core->bell(l->e->client, l->remote);
}

void hf__et_wait(struct et_lock *l, enum et_wait how, const char *key,
                 size_t len, int64_t view)
{
    const struct et_watch *w = watch_kept(l, how, key, len);

    if (!w)
        w = watch_add(l, how, key, len);
    l->view = view;
    l->state = ET_QUEUED;
    if (w && (w->reported > view || w->revision > view))
        hf__et_ring(l);
}

void hf__et_unwatch(struct et_lock *l)
{
    for (int i = 0; i < ET_WATCHES; i++)
        if (l->watch[i])
            watch_cancel(l->e, l->watch[i]);
    if (l->own)
        watch_cancel(l->e, l->own);
}

/* Keeps the lock's own watch if that watch is already on the key of the entry.
 * If the entry is deleted before the server confirms a new watch, the next
 * renewal detects the deletion. */
void hf__et_watch_own(struct et_lock *l)
{
    struct etcd *e = l->e;

    if (!e->listens)
        return;
    if (l->own && watch_is_on(l->own, ET_GONE, l->key, l->key_len))
        return;
    if (l->own)
        watch_cancel(e, l->own);
    l->own = watch_new(e, l, ET_GONE, l->key, l->key_len);
    if (l->own && !watch_begin(e, l->own))
        watch_forget(e, l->own);
}

/* ---- the guard, hf_ask --------------------------------------------------- */

hf__time hf__et_watch_timeout(const struct etcd *e)
{
    return e->guard_watch && !e->lacks_watch ? HF__NEVER : e->watch_at;
}

void hf__et_heard(struct etcd *e, int64_t revision)
{
    if (revision > e->heard && revision < INT64_MAX)
        e->heard = revision;
}

/* Notes up to which revision the writes of hf_ask were received: if ask_watch
 * has existed since the previous keep-alive, up to the revision of that
 * keep-alive. */
void hf__et_heard_all(struct etcd *e, int64_t revision)
{
    bool listens = e->ask_watch && e->ask_watch->revision;

    if (listens)
        hf__et_heard(e, e->kept_rev);
    e->kept_rev = listens ? revision : 0;
}

static void watch_wishes(struct etcd *e)
{
    if (!e->listens || e->ask_watch)
        return;
    watch_alone(e, NULL, &e->ask_watch, ET_WRITTEN, e->ask_key,
                strlen(e->ask_key));
    e->lacks_watch = e->lacks_watch || !e->ask_watch;
}

bool hf__et_watch_is_due(struct etcd *e, hf__time now)
{
    if ((e->guard_watch && !e->lacks_watch) || now < e->watch_at)
        return false;
    e->watch_at = now + PAUSE;
    e->lacks_watch = false;
    return true;
}

void hf__et_watch_all(struct etcd *e)
{
    watch_wishes(e);
    for (struct et_lock *l = e->locks; l; l = l->next)
        if (l->state == ET_HELD)
            hf__et_watch_own(l);
    if (!e->guard_watch)
        watch_alone(e, NULL, &e->guard_watch, ET_GONE, e->guard_key,
                    e->guard_len);
}

/* ---- changes ------------------------------------------------------------- */

void hf__et_watch_changes(struct etcd *e, const struct et_watch_events *events,
                          struct et_changes *changes, struct et_watch **place,
                          const char *key, size_t len)
{
    watch_alone(e, changes, place, ET_ALL, key, len);
    if (*place)
        (*place)->events = events;
}

void hf__et_watch_end(struct etcd *e, struct et_watch *w)
{
    watch_cancel(e, w);
}

/* ---- what the server reports --------------------------------------------- */

static struct et_watch *watch_find(const struct etcd *e, int64_t id)
{
    return hf__table_find(&e->watches, 0, (char *)&id, sizeof(id));
}

/* Returns the watch that was refused. A refusal carries no id, but it always
 * refers to the oldest watch that is not confirmed. */
static struct et_watch *watch_refused(const struct etcd *e)
{
    struct et_watch *first = NULL, *w = NULL;

    while ((w = hf__table_next(&e->watches, w)))
        if (!w->revision && (!first || w->id < first->id))
            first = w;
    return first;
}

static int64_t watch_last_event(const Etcd__WatchAnswer *a)
{
    int64_t at = 0;

    for (size_t i = 0; i < a->n_events; i++)
        if (a->events[i]->kv && a->events[i]->kv->mod_revision > at)
            at = a->events[i]->kv->mod_revision;
    return at;
}

static bool watch_is_resting(const struct et_lock *l)
{
    return !l->attempt && l->state == ET_RESTING;
}

/* Handles an event of a hold's own entry. All holders of an unfair mutex use
 * the same key. Therefore the watch on that key ends with the hold; otherwise
 * it would report events of other holders. */
static void watch_own_reported(struct etcd *e, struct et_watch *w, int64_t at)
{
    struct et_lock *l = w->lock;

    if (at > l->rev && l->state == ET_HELD) {
        hf__et_lock_taken(l);
        e->core->lost(e->client, l->remote, l->hold_id, NULL);
    }
    if (l->state != ET_HELD && l->form == ET_FORM_UNFAIR)
        watch_cancel(e, w);
}

static void watch_lock_reported(struct etcd *e, struct et_watch *w,
                                const Etcd__WatchAnswer *a)
{
    struct et_lock *l = w->lock;
    bool is_front = l->watch[0] == w;
    int64_t at = watch_last_event(a);

    if (a->created)
        w->revision = a->header->revision;
    if (w == l->own) {
        watch_own_reported(e, w, at);
        return;
    }
    if (a->created) {
        if (is_front && l->state == ET_QUEUED && w->revision != l->view)
            hf__et_ring(l);
        return;
    }
    w->reported = at > w->reported ? at : w->reported;
    if (is_front && l->state == ET_QUEUED && w->reported > l->view)
        hf__et_ring(l);
    else if (watch_is_resting(l) || (!is_front && ++w->idle > IDLE_MOST))
        watch_cancel(e, w);
}

static void watch_changes_reported(struct etcd *e, struct et_watch *w,
                                   const Etcd__WatchAnswer *a)
{
    if (a->created)
        w->events->confirmed(e, w->changes);
    for (size_t i = 0; i < a->n_events; i++)
        if (a->events[i]->kv)
            w->events->written(e, w->changes,
                               (char *)a->events[i]->kv->key.data,
                               a->events[i]->kv->key.len);
}

/* Notifies the holder with this token that another client asks for the lock. If
 * the lock is not granted yet, lock_grant() notifies the holder later. */
static void watch_ask_for(struct etcd *e, int64_t token)
{
    for (struct et_lock *l = e->locks; l; l = l->next) {
        if (token <= 0 || l->rev != token)
            continue;
        l->wanted = token;
        if (l->state == ET_HELD)
            e->core->wanted(e->client, l->remote, (uint64_t)token);
    }
}

static void watch_wishes_reported(struct etcd *e, const Etcd__WatchAnswer *a)
{
    for (size_t i = 0; i < a->n_events; i++) {
        const Etcd__KeyValue *kv = a->events[i]->kv;
        const char *at, *end;

        if (!kv)
            continue;
        hf__et_heard(e, kv->mod_revision);
        /* The key was deleted, or another program wrote its value. */
        if (!kv->value.len || kv->value.len > ET_WISHES)
            continue;
        at = (char *)kv->value.data;
        end = at + kv->value.len;
        while (at < end)
            watch_ask_for(e, hf__et_number(&at, end));
    }
}

/* Handles a watch that the server has ended. A waiting lock reads the queue
 * again at once, which creates another watch. If another watch has ended, or
 * missing watches were created, within the last PAUSE, the lock waits for
 * poll_at instead. */
static int watch_ended(struct etcd *e, struct et_watch *w,
                       const Etcd__WatchAnswer *a, hf__time now)
{
    struct et_lock *l = w->lock;
    bool is_soon = now < e->watch_at;

    e->watch_at = now + PAUSE;
    e->lacks_watch = e->lacks_watch || w->changes || w == e->ask_watch;
    if (w == e->ask_watch) {
        e->kept_rev = 0;
        /* The server no longer has the events before compact_revision. */
        hf__et_heard(e, a->compact_revision);
    }
    if (w->changes)
        w->events->refused(e, w->changes, a->cancel_reason);
    if (l && l->state == ET_QUEUED && !is_soon)
        hf__et_ring(l);
    watch_forget(e, w);
    return 0;
}

static int watch_reported(struct etcd *e, const Etcd__WatchAnswer *a,
                          hf__time now)
{
    struct et_watch *w = a->canceled && a->watch_id < 0
                             ? watch_refused(e)
                             : watch_find(e, a->watch_id);

    if (!w)
        return 0;
    if (a->canceled)
        return watch_ended(e, w, a, now);
    if (w->lock) {
        watch_lock_reported(e, w, a);
        return 0;
    }
    if (a->created)
        w->revision = a->header->revision;
    if (w->changes) {
        watch_changes_reported(e, w, a);
        return 0;
    }
    if (w == e->ask_watch) {
        watch_wishes_reported(e, a);
        return 0;
    }
    /* While the client closes, its own revocation deletes the guard. */
    if (!watch_last_event(a) || e->is_closing)
        return 0;
    /* The greeting of the next connection finds out whether the lease is gone
     * or only the guard. */
    return hf__grpc_leave(&e->g, "the client's key has been deleted");
}

static int watch_message(struct grpc_call *c, const uint8_t *p, size_t len,
                         hf__time now)
{
    struct etcd *e = c->owner;
    Etcd__WatchAnswer *a = etcd__watch_answer__unpack(&e->memory, len, p);
    int rc = a && (a->header || a->canceled) ? watch_reported(e, a, now)
                                             : hf__et_odd(e);

    etcd__watch_answer__free_unpacked(a, &e->memory);
    return rc;
}

void hf__et_watches_down(struct etcd *e)
{
    struct et_watch *w = hf__table_next(&e->watches, NULL), *next;

    e->kept_rev = 0;
    for (; w; w = next) {
        next = hf__table_next(&e->watches, w);
        if (w->lock && hf__et_is_queued(w->lock))
            hf__et_ring(w->lock);
        watch_forget(e, w);
    }
}
