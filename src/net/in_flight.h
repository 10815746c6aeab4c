/*
 * Requests in flight on a link, which are answered in the order of sending.
 * This file knows nothing of their contents. The owner has a struct for each,
 * which begins with a struct net_sent. The client's mutex is held.
 */
#ifndef HF_NET_IN_FLIGHT_H
#define HF_NET_IN_FLIGHT_H

#include "link.h"

struct net_sent {
    hf__time at;    /* when it was added, just before it was sent */
    uint64_t start; /* the offset of its first byte, as stream.written counts */
};

struct net_sents {
    const struct hf__core *core;
    hf_client *client;
    char *ring;  /* room for `cap` requests, a power of two */
    size_t head; /* how many were answered or lost so far */
    size_t len, cap;
    size_t size; /* size of the owner's struct */
};

/* size: of the owner's struct that begins with a struct net_sent. */
void hf__sent_init(struct net_sents *, const struct hf__core *, hf_client *,
                   size_t size);
void hf__sent_fini(struct net_sents *);
void hf__sent_clear(struct net_sents *); /* drops all */

/* Adds a request, whose bytes the caller writes to stream.out after this call.
 * From now on its answer is due. Returns the owner's struct, zero except for
 * its net_sent; NULL if out of memory. The pointer is invalid once another
 * request is added. */
void *hf__sent_add(struct net_sents *, struct net_link *);
/* Returns the i-th request, the oldest first. */
void *hf__sent_at(const struct net_sents *, size_t i);
/* Takes out and returns the oldest request, which was answered. There must be
 * one. */
void *hf__sent_take(struct net_sents *);
/* Puts the last taken request back as the oldest. Only if no request was added
 * since. */
void hf__sent_untake(struct net_sents *);
/* After the link went down with that many bytes written: hf__sent_lost() takes
 * out the oldest request of which a byte was written, hf__sent_unsent() the
 * newest of which none was. Both return NULL if there is none left. */
void *hf__sent_lost(struct net_sents *, uint64_t written);
void *hf__sent_unsent(struct net_sents *, uint64_t written);

#endif
