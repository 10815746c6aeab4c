/*
 * The watches of a client, and which of them have changed. The backend marks a
 * watch (hf__core.changed), which needs no memory, so no change is lost and
 * several changes may be one call. A marked watch is in client->changed. While
 * the program does not have the watch yet, or its callback is running, the
 * watch is put there later. client->mu is held.
 */
#ifndef HF_WATCHES_H
#define HF_WATCHES_H

#include "backends/backend.h"

#include <pthread.h>

struct hf_watch {
    struct hf__listener on;
    hf_watch *next, *prev; /* client->changed: only if not calling */
    hf_client *client;
    hf_watch_fn fn;
    void *arg;
    pthread_t caller; /* the thread that runs the callback */
    bool given;       /* the program has it; before that it is not called */
    bool changed, calling;
    bool freed; /* it was freed in its own callback, so the calling thread frees
                   the memory */
    char heard[HF_NAME_MAX + 1]; /* which name has changed; "": several, or
                                    unknown */
    char name[];                 /* the name with the client's prefix */
};

/* Implements hf__core.changed. */
void hf__watch_changed(hf_client *, struct hf__listener *, const char *name,
                       size_t len);
/* Ends a watch; NULL, or one that the program never got, is allowed. */
void hf__watch_remove_locked(struct hf__listener *);
/* Put a watch into client->changed, and take it out. */
void hf__watch_ring_locked(hf_client *, hf_watch *);
void hf__watch_unring_locked(hf_client *, hf_watch *);

#endif
