#include "latch_requests.h"

enum hf__latch_sending hf__latch_request(struct hf__latch_requests *l,
                                         int64_t session, uint64_t request)
{
    if (l->session != session) {
        l->session = session;
        l->before = l->last;
    }
    if (request <= l->before)
        return HF__LATCH_IN_DOUBT;
    if (request <= l->last)
        return HF__LATCH_AGAIN;
    l->last = request;
    return HF__LATCH_FIRST;
}
