/*
 * replicas=n: a grant or a renewal counts only if n replicas have it. A request
 * is in doubt, and is kept here, until the reply to a WAIT arrives. Then
 * `decided` is called for each request in doubt, in the order in which the
 * server answered these requests. Without replicas= the functions do almost
 * nothing.
 */
#ifndef HF_REDIS_REPLICA_H
#define HF_REDIS_REPLICA_H

#include "flights.h"

/* Requests that the server has granted or renewed, but that replicas have not
 * confirmed yet. */
struct rd_doubts {
    uint32_t need; /* number of replicas (n); if 0, nothing is ever in doubt */
    uint32_t ms;   /* replica_timeout, in ms */
    bool waiting;  /* a WAIT is under way */
    bool wanted;   /* another WAIT must be sent */
    size_t len, cap;
    struct rd_flight *all;
    /* Called when a request is no longer in doubt: with 0 if enough replicas
     * have confirmed it, else with an error code. */
    void (*decided)(struct redis *, const struct rd_flight *, int code,
                    hf__time now);
};

/* Reads the options replicas= and replica_timeout=. Returns 0, or HF_EINVAL and
 * sets the error message. */
int hf__rd_doubt_parse(struct redis *, const struct hf__config *);
/* If replicas= is set, reserves room to keep the request of a command that is
 * about to be sent. `now` says that a WAIT must follow the command at once.
 * Returns 0 or HF_ENOMEM. */
int hf__rd_doubt_room(struct redis *, bool now);

/* Keeps an answered request in doubt, so that the caller does not report it.
 * Returns false if replicas= is not set, so that the caller must report it. */
bool hf__rd_doubt(struct redis *, const struct rd_flight *);
/* Makes this unit forget a request that the caller is about to free. */
void hf__rd_doubt_forget(struct redis *, const struct hf__req *);
/* Ends all requests in doubt as EUNKNOWN, because the connection was lost. */
void hf__rd_doubt_lost(struct redis *, hf__time now);
/* Appends a WAIT if one is wanted and none is under way. */
void hf__rd_doubt_send(struct redis *);
void hf__rd_doubt_fini(struct redis *);

#endif
