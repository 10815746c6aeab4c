/*
 * The watches of a client, and which of them have changed. The backend marks a
 * watch (hf__core.changed). This needs no memory, so no change is lost; several
 * changes may cause one call of the callback. A marked watch is in
 * client->changed, except while the program does not have the watch yet or the
 * callback is running. client->mu is held.
 */
#ifndef HF_WATCHES_H
#define HF_WATCHES_H

#include "backends/backend.h"

#include <pthread.h>

struct hf_watch {
    struct hf__listener on;
    hf_watch *next, *prev; /* in client->changed; not used while `calling` */
    hf_client *client;
    hf_watch_fn fn;
    void *arg;
    pthread_t caller; /* the thread that runs the callback */
    bool given;       /* the program has the watch; before that, fn is not
                         called */
    bool changed, calling;
    bool freed; /* freed in its own callback; the memory is freed by the thread
                   that called the callback */
    char heard[HF_NAME_MAX + 1]; /* the name that has changed, or "" if it is
                                    unknown or there are several */
    char name[];                 /* the name with the client's prefix */
};

/* Implements hf__core.changed. */
void hf__watch_changed(hf_client *, struct hf__listener *, const char *name,
                       size_t len);
/* Ends a watch. NULL, or a watch that the program never got, is allowed. */
void hf__watch_remove_locked(struct hf__listener *);
/* Puts a watch into client->changed. */
void hf__watch_ring_locked(hf_client *, hf_watch *);
/* Takes a watch out of client->changed. */
void hf__watch_unring_locked(hf_client *, hf_watch *);

#endif
