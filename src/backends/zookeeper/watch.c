#include "watch.h"

#include "backends/common/table.h"
#include "base/list.h"
#include "call.h"
#include "lock.h"
#include "path.h"
#include "zookeeper.h"

#include <string.h>

#define POLL (1500 * HF__MS)
/* A random part of this is added to POLL, so that clients do not poll
 * together. */
#define POLL_SPREAD (400 * HF__MS)
/* The longest wait for the answers to safety polls. */
#define POLL_LATE (500 * HF__MS)

struct zk_watch {
    struct hf__keyed key; /* the path and the kind */
    struct zk *z;
    struct zk_lock *locks;
    uintptr_t id; /* unique in this client */
};

void hf__zk_unwatch(struct zk_lock *lock)
{
    if (lock->watch)
        hf__list_remove(lock->watch->locks, lock);
    lock->watch = NULL;
}

static void watch_join(struct zk_watch *w, struct zk_lock *lock)
{
    lock->watch = w;
    hf__list_add(w->locks, lock);
}

/* Notifies all locks of the watch. `deleted` is true if the watched node is
 * gone. */
static void watch_ring(struct zk_watch *w, bool deleted)
{
    struct zk *z = w->z;

    while (w->locks) {
        struct zk_lock *lock = w->locks;

        hf__zk_unwatch(lock);
        lock->deleted = deleted;
        if (lock->passed)
            lock->passed(lock);
        else
            z->core->bell(z->client, lock->remote);
    }
}

/* Rings and frees the watch. */
static void watch_fire(struct zk_watch *w, bool deleted)
{
    watch_ring(w, deleted);
    hf__table_remove(&w->z->watches, w);
}

static void watch_on_event(zhandle_t *zh, int type, int state, const char *path,
                           void *arg)
{
    (void)zh;
    (void)state;
    (void)path;
    if (type != ZOO_SESSION_EVENT) /* session events reach every watcher */
        watch_fire(arg, type == ZOO_DELETED_EVENT);
}

static bool watch_is_listed(const struct zk_watch *w,
                            const struct String_vector *children)
{
    const char *name = strrchr(w->key.text, '/') + 1;

    for (int32_t i = 0; i < children->count; i++)
        if (strcmp(children->data[i], name) == 0)
            return true;
    return false;
}

/* Handles the answer to watch_siblings(), a list that has set a watch on the
 * children of the parent. */
static void watch_on_siblings(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_watch *w = owner;

    if (rc == ZOK) { /* watch_on_event() will be called */
        if (!watch_is_listed(w, reply->children))
            watch_ring(w, true);
        return;
    }
    if (rc == ZNOAUTH)
        for (struct zk_lock *lock = w->locks; lock; lock = lock->next)
            lock->blind = true;
    watch_fire(w, rc == ZNONODE);
}

/* Watches the children of the parent instead, because the client has no right
 * to read the node. (A watch by exists would be allowed, but recent servers do
 * not report the deletion to it.) */
static int watch_siblings(struct zk_watch *w)
{
    char dir[ZK_WHOLE_MAX];

    strcpy(dir, w->key.text);
    *strrchr(dir, '/') = '\0';
    return hf__zk_list(w->z, dir, watch_on_event, watch_on_siblings, w);
}

static void watch_on_set(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_watch *w = owner;

    (void)reply;
    if (rc == ZOK)
        return; /* watch_on_event() will be called */
    if (rc == ZNOAUTH && w->key.number == ZK_WATCH_NODE &&
        watch_siblings(w) == 0)
        return;
    watch_fire(w, rc == ZNONODE);
}

int hf__zk_watch(struct zk *z, struct zk_lock *lock, enum zk_watch_kind kind,
                 const char *path)
{
    size_t len = strlen(path);
    struct zk_watch *w;
    int rc;

    lock->deleted = false;
    hf__zk_unwatch(lock);
    w = hf__table_find(&z->watches, (uint16_t)kind, path, len);
    if (w) {
        watch_join(w, lock);
        return 0;
    }
    w = hf__table_add(&z->watches, sizeof(*w), (uint16_t)kind, path, len);
    if (!w)
        return HF_ENOMEM;
    w->z = z;
    w->id = ++z->watch_ids;
    rc = kind == ZK_WATCH_NODE
             ? hf__zk_get(z, path, watch_on_event, watch_on_set, w)
             : hf__zk_list(z, path, watch_on_event, watch_on_set, w);
    if (rc)
        hf__table_remove(&z->watches, w);
    else
        watch_join(w, lock);
    return rc;
}

void hf__zk_watches_down(struct zk *z)
{
    for (struct zk_watch *w = hf__table_next(&z->watches, NULL); w;
         w = hf__table_next(&z->watches, w))
        watch_ring(w, false);
}

/* ---- in case an event was lost ------------------------------------------- */

static bool watch_has_waiters(const struct zk *z)
{
    return z->up && (z->waiting || z->waiting_latch);
}

static hf__time watch_next_poll(const struct zk *z)
{
    return z->core->now() + POLL + POLL_SPREAD / 256 * z->salt[0];
}

void hf__zk_watches_begin(struct zk *z)
{
    if (!z->waiting && !z->waiting_latch)
        z->poll_at = watch_next_poll(z);
}

/* Handles the answer to a safety poll. The watch may have been freed, so
 * `owner` is not a pointer but the id of the watch. */
static void watch_on_there(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_watch *w = hf__table_next(&z->watches, NULL);

    if (z->polls && !--z->polls)
        z->poll_at = watch_next_poll(z);
    if (rc != ZNONODE)
        return;
    while (w && w->id != (uintptr_t)owner)
        w = hf__table_next(&z->watches, w);
    if (w)
        watch_ring(w, true);
}

static void poll_watched(struct zk *z)
{
    struct zk_watch *w = hf__table_next(&z->watches, NULL);
    int rc = 0;

    for (; w && !rc; w = hf__table_next(&z->watches, w)) {
        if (!w->locks)
            continue;
        if (w->key.number == ZK_WATCH_CHILDREN)
            watch_ring(w, false);
        else if (!(rc = hf__zk_exists(z, w->key.text, NULL, watch_on_there,
                                      (void *)w->id)))
            z->polls++;
    }
    z->poll_at = z->polls ? z->core->now() + POLL_LATE : watch_next_poll(z);
}

/* Handles safety polls that were not answered in time. A safety poll belongs to
 * no request of the core, so no request would fail because of it. Therefore all
 * waiting locks try again, and these attempts end after op_timeout if they are
 * not answered either. */
static void watch_poll_late(struct zk *z)
{
    z->polls = 0;
    hf__zk_watches_down(z);
    z->poll_at = watch_next_poll(z);
}

/* Returns a lock with `passed` set whose pass_until has come. If there is none,
 * returns NULL and sets *next to the earliest pass_until of the locks. */
static struct zk_lock *watch_find_late(struct zk *z, hf__time now,
                                       hf__time *next)
{
    struct zk_watch *w = hf__table_next(&z->watches, NULL);

    *next = HF__NEVER;
    for (; w; w = hf__table_next(&z->watches, w))
        for (struct zk_lock *lock = w->locks; lock; lock = lock->next) {
            if (lock->passed && now >= lock->pass_until)
                return lock;
            if (lock->passed)
                *next = hf__min_time(*next, lock->pass_until);
        }
    return NULL;
}

void hf__zk_watches_move(struct zk *z, hf__time now)
{
    struct zk_lock *late;

    if (watch_has_waiters(z) && now >= z->poll_at)
        (z->polls ? watch_poll_late : poll_watched)(z);
    while (now >= z->pass_at && (late = watch_find_late(z, now, &z->pass_at))) {
        z->pass_at = now;
        hf__zk_unwatch(late);
        late->passed(late);
    }
}

hf__time hf__zk_watches_timeout(const struct zk *z)
{
    return watch_has_waiters(z) ? hf__min_time(z->pass_at, z->poll_at)
                                : z->pass_at;
}

void hf__zk_watches_lost(struct zk *z)
{
    struct zk_watch *w = hf__table_next(&z->watches, NULL), *next;

    for (; w; w = next) {
        next = hf__table_next(&z->watches, w);
        watch_fire(w, false);
    }
    z->polls = 0;
    z->pass_at = HF__NEVER; /* a time in the past would keep the driver awake */
}
