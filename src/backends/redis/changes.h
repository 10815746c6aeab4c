/*
 * Changes of the names that the program watches, reported by keyspace
 * notifications on a separate connection (redis.changes). query.c calls
 * hf__rd_listen() for a LISTEN; hf__rd_unlisten() is a slot of the backend's
 * table.
 */
#ifndef HF_REDIS_CHANGES_H
#define HF_REDIS_CHANGES_H

#include "pipe.h"

/* The server's setting for keyspace notifications. Its value must contain "K",
 * and either these letters or "A". */
#define RD_EVENTS_SETTING "notify-keyspace-events"
#define RD_EVENTS_NEEDED "g$lhxe"

struct redis;
struct rd_watcher;

/*
 * State of r->changes.
 *
 *   state        link      `due`          subscriptions
 *   OFF          not UP    meaningless    none
 *   CHECKING     UP        0              none; the setting has been requested
 *   CONFIRMING   UP        any            requested for all watchers
 *   ON           UP        any            confirmed, except those in `due`
 *
 * OFF -> CHECKING when the connection is up, -> CONFIRMING when the setting is
 * sufficient, -> ON at the last confirmation. Then each unanswered LISTEN gets
 * its result, and every other watcher gets one change, because changes before
 * the subscription may have been missed. In ON, `due` counts the subscriptions
 * of watchers that were added after that. Losing the connection, or a refusal,
 * leads to OFF.
 */
enum rd_changes_state {
    RD_CHANGES_OFF,
    RD_CHANGES_CHECKING,
    RD_CHANGES_CONFIRMING,
    RD_CHANGES_ON,
};

struct rd_watchers {
    struct rd_watcher *first;
    enum rd_changes_state state;
    size_t due;     /* number of confirmations still to come */
    hf__time again; /* when to reconnect, in OFF with a watcher */
};

/* The pipe callbacks of r->changes. */
extern const struct rd_owner hf__rd_changes;

/* Starts to watch the names of a LISTEN. Returns HF__PENDING if the query will
 * be finished when the server has confirmed the subscription, HF__LATER if the
 * command connection is not up, or HF_ENOMEM. */
int hf__rd_listen(struct redis *, struct hf__query *);
void hf__rd_unlisten(void *, struct hf__listener *);

/* Parts of the backend's advance() and next_timeout(). */
void hf__rd_changes_move(struct redis *, hf__time now);
hf__time hf__rd_changes_timeout(const struct redis *);
void hf__rd_changes_fini(struct redis *);

/* Returns whether a server with this value of RD_EVENTS_SETTING announces all
 * changes that a watcher needs. */
bool hf__rd_publishes_changes(const char *setting);

#endif
