/*
 * Changes of the names that the program watches: keyspace notifications, over a
 * connection of their own (redis.changes). query.c passes LISTEN on;
 * hf__rd_unlisten() is a slot of the backend's table.
 */
#ifndef HF_REDIS_CHANGES_H
#define HF_REDIS_CHANGES_H

#include "pipe.h"

/* The server's setting, and the letters that its value must contain in addition
 * to "K". */
#define RD_EVENTS_SETTING "notify-keyspace-events"
#define RD_EVENTS_NEEDED "g$lhxe"

struct redis;
struct rd_watcher;

/*
 * State of r->changes.
 *
 *   state        link      `due`          subscribed
 *   OFF          not UP    meaningless    no watcher
 *   CHECKING     UP        0              none; the setting is requested
 *   CONFIRMING   UP        any            all, but not all are confirmed
 *   ON           UP        any            all; `due` of later watchers
 *
 * OFF -> CHECKING when the connection is up, -> CONFIRMING when the setting is
 * right, -> ON at the last confirmation. Each watcher then gets one change,
 * because it may have missed some. Losing the connection, or a refusal, leads
 * to OFF.
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
    hf__time again; /* in OFF, if there are watchers: when to reconnect */
};

/* The owner of r->changes. */
extern const struct rd_owner hf__rd_changes;

/* Returns HF__PENDING: the query is finished when the server has confirmed the
 * subscription; HF__LATER: not connected; or HF_ENOMEM. */
int hf__rd_listen(struct redis *, struct hf__query *);
void hf__rd_unlisten(void *, struct hf__listener *);

/* For the backend's advance and next_timeout. */
void hf__rd_changes_move(struct redis *, hf__time now);
hf__time hf__rd_changes_timeout(const struct redis *);
void hf__rd_changes_fini(struct redis *);

/* Returns whether this value of the setting is sufficient. */
bool hf__rd_publishes_changes(const char *setting);

#endif
