/*
 * Watches of a client, and which of them have changed. The backend marks a
 * watch (hf__core.changed), which needs no memory: so no change is lost, and
 * several may be one call. A watch that is marked is in client->changed, unless
 * the program does not have it yet or its callback is running: then it is put
 * there when that is over. client->mu is held.
 */
#ifndef HF_WATCHES_H
#define HF_WATCHES_H

#include "backends/backend.h"

#include <pthread.h>

struct hf_watch {
    struct hf__listener on;
    hf_watch *next, *prev; /* client->changed: if it is changed, not calling */
    hf_client *client;
    hf_watch_fn fn;
    void *arg;
    pthread_t caller; /* while it is calling */
    bool given;       /* the program has it; until then it is not called */
    bool changed, calling;
    bool freed;                  /* by its own callback: its caller does it */
    char heard[HF_NAME_MAX + 1]; /* which name has changed; "": several, any */
    char name[];                 /* with the client's prefix */
};

/* hf__core.changed */
void hf__watch_changed(hf_client *, struct hf__listener *, const char *name,
                       size_t len);
/* Ends it; it may be NULL, or one that the program never got. */
void hf__watch_remove_locked(struct hf__listener *);
/* Into client->changed, and out. */
void hf__watch_ring_locked(hf_client *, hf_watch *);
void hf__watch_unring_locked(hf_client *, hf_watch *);

#endif
