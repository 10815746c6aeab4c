/*
 * Changes of names that the program watches: keyspace notifications, by a
 * connection of their own (redis.changes). query.c passes LISTEN on;
 * hf__rd_unlisten() is the slot of the backend's table.
 */
#ifndef HF_REDIS_CHANGES_H
#define HF_REDIS_CHANGES_H

#include "pipe.h"

/* What the server has to publish, so that names can be watched; and K. */
#define RD_EVENTS_SETTING "notify-keyspace-events"
#define RD_EVENTS_NEEDED "g$lhxe"

struct redis;
struct rd_watcher;

/*
 * How far r->changes has come.
 *
 *   state        link      `due`          who is subscribed
 *   OFF          not UP    of no meaning  nobody
 *   CHECKING     UP        0              nobody: the setting is requested
 *   CONFIRMING   UP        any            all, and not all are confirmed
 *   ON           UP        any            all; `due` of later watchers
 *
 * OFF -> CHECKING when the connection is up, -> CONFIRMING when the setting is
 * right, -> ON with the last confirmation: then each watcher hears that it may
 * have missed something. Any loss or refusal leads to OFF.
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
    size_t due; /* confirmations that are to come */
    hf__time
        again; /* the link is OFF, and somebody watches: it is started then */
};

/* The owner of r->changes. */
extern const struct rd_owner hf__rd_changes;

int hf__rd_listen(struct redis *, struct hf__query *);
void hf__rd_unlisten(void *, struct hf__listener *);

void hf__rd_changes_move(struct redis *, hf__time now);
hf__time hf__rd_changes_timeout(const struct redis *);
void hf__rd_changes_fini(struct redis *);

/* This value of the setting is enough. */
bool hf__rd_publishes_changes(const char *setting);

#endif
