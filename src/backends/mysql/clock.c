#include "clock.h"

/* Stores a reading of the server's clock, and the time at which the answer with
 * it arrived. The server read its clock before that time. The reading plus the
 * time since the arrival is therefore never ahead of the server's clock. */
void hf__my_clock(struct mysql *m, uint64_t us)
{
    m->server_us = us;
    m->server_at = m->core->now();
}

uint64_t hf__my_late(const struct mysql *m, const struct hf__req *req)
{
    if (req->meant_until == HF__NEVER)
        return UINT64_MAX >> 1;
    return m->server_us + (uint64_t)((req->meant_until - m->server_at) / 1000);
}
