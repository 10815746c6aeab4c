/*
 * Requests in flight on a link. The server answers them in the order of
 * sending. The owner defines a struct for each request, which begins with a
 * struct net_sent; this file uses only that part. The client's mutex is held.
 */
#ifndef HF_NET_IN_FLIGHT_H
#define HF_NET_IN_FLIGHT_H

#include "link.h"

struct net_sent {
    hf__time at;    /* when the request was added, just before it was sent */
    uint64_t start; /* offset of its first byte, counted like stream.written */
};

struct net_sents {
    const struct hf__core *core;
    hf_client *client;
    char *ring;  /* room for `cap` requests; cap is a power of two */
    size_t head; /* requests answered or lost so far */
    size_t len, cap;
    size_t size; /* size of the owner's struct */
};

/* Initializes an empty list of requests. `size` is the size of the owner's
 * struct, which begins with a struct net_sent. */
void hf__sent_init(struct net_sents *, const struct hf__core *, hf_client *,
                   size_t size);
void hf__sent_fini(struct net_sents *);
void hf__sent_clear(struct net_sents *); /* drops all requests */

/* Adds a request, whose bytes the caller writes to stream.out after this call.
 * From now on its answer is due. Returns the owner's struct, zero except for
 * its net_sent, or NULL if out of memory. The pointer is invalid once another
 * request is added. */
void *hf__sent_add(struct net_sents *, struct net_link *);
/* Returns the i-th request; the 0th is the oldest. */
void *hf__sent_at(const struct net_sents *, size_t i);
/* Removes and returns the oldest request, which was answered. There must be
 * one. */
void *hf__sent_take(struct net_sents *);
/* Undoes the last hf__sent_take(): its request is the oldest again. No request
 * may have been added since. */
void hf__sent_untake(struct net_sents *);
/* For a link that went down after `written` bytes were sent. Removes and
 * returns the oldest request if any byte of it was sent, otherwise returns
 * NULL. */
void *hf__sent_lost(struct net_sents *, uint64_t written);
/* For a link that went down after `written` bytes were sent. Removes and
 * returns the newest request if no byte of it was sent, otherwise returns
 * NULL. */
void *hf__sent_unsent(struct net_sents *, uint64_t written);

#endif
