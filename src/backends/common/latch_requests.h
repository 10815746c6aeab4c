/*
 * Which sets and downs of latches a client may send again. The server counts
 * each and creates a mark for it in one step; after a lost answer the mark
 * tells that it was counted. The mark goes with the client's session, so a
 * request that was sent in an earlier session must not be sent again. Pure.
 */
#ifndef HF_LATCH_REQUESTS_H
#define HF_LATCH_REQUESTS_H

#include <stdint.h>

/* Of one client; {0} at first. */
struct hf__latch_requests {
    uint64_t last;   /* the newest that was sent */
    uint64_t before; /* the newest that was sent in an earlier session */
    int64_t session; /* in which `last` was sent */
};

enum hf__latch_sending {
    HF__LATCH_FIRST,    /* it was never sent */
    HF__LATCH_AGAIN,    /* it was sent in this session */
    HF__LATCH_IN_DOUBT, /* it was sent in an earlier one: it may be counted */
};

/* Notes that a request, numbered in the order of sending, is about to be sent,
 * unless it is IN_DOUBT. */
enum hf__latch_sending hf__latch_request(struct hf__latch_requests *,
                                         int64_t session, uint64_t request);

#endif
