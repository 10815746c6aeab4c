/*
 * What is under way on a link: sent, and answered in the order of sending. It
 * knows nothing of what was said. Each is a struct of the owner's that begins
 * with a struct net_sent.
 */
#ifndef HF_NET_IN_FLIGHT_H
#define HF_NET_IN_FLIGHT_H

#include "link.h"

struct net_sent {
    hf__time at;    /* when it was sent, or a little before */
    uint64_t start; /* where it begins in stream.written */
};

struct net_sents {
    const struct hf__core *core;
    hf_client *client;
    char *ring;  /* cap is a power of two */
    size_t head; /* how many have been answered or lost, ever */
    size_t len, cap;
    size_t size; /* of the owner's struct */
};

void hf__sent_init(struct net_sents *, const struct hf__core *, hf_client *,
                   size_t size);
void hf__sent_fini(struct net_sents *);
void hf__sent_clear(struct net_sents *); /* forgets all */

/* What is written to stream.out from here on is a new one, whose answer is due.
 * The owner's struct, zero but for its net_sent; NULL: out of memory. Not to be
 * used any more once another was added. */
void *hf__sent_add(struct net_sents *, struct net_link *);
/* The i-th, the oldest first. */
void *hf__sent_at(const struct net_sents *, size_t i);
/* There is one: takes out the oldest, which is answered. */
void *hf__sent_take(struct net_sents *);
/* The one that was taken last is the oldest again. Nothing was added since. */
void hf__sent_untake(struct net_sents *);
/* The link is down, so many bytes were written: takes out the oldest of which
 * a byte was; the newest of those of which none was. NULL: there is none
 * (left). */
void *hf__sent_lost(struct net_sents *, uint64_t written);
void *hf__sent_unsent(struct net_sents *, uint64_t written);

#endif
