/*
 * Decides which sets and downs of latches a client may send again. The server
 * counts each request and creates a mark for it atomically; after a lost answer
 * the mark shows that the request was counted. The mark disappears with the
 * client's session. From then on nothing shows whether a request of that
 * session was counted, so the request must not be sent again. Pure.
 */
#ifndef HF_LATCH_REQUESTS_H
#define HF_LATCH_REQUESTS_H

#include <stdint.h>

/* The latch requests of one client; {0} at first. */
struct hf__latch_requests {
    uint64_t last;   /* number of the newest request that was sent */
    uint64_t before; /* number of the newest request of an earlier session */
    int64_t session; /* the session in which `last` was sent */
};

enum hf__latch_sending {
    HF__LATCH_FIRST,    /* the request was never sent */
    HF__LATCH_AGAIN,    /* it was sent in this session, and may be sent again */
    HF__LATCH_IN_DOUBT, /* it was sent in an earlier session, and may have been
                           counted */
};

/* Returns whether a request was sent before, and whether in this session.
 * Requests are numbered in the order of their first sending. Unless the result
 * is IN_DOUBT, the request is noted as sent. */
enum hf__latch_sending hf__latch_request(struct hf__latch_requests *,
                                         int64_t session, uint64_t request);

#endif
