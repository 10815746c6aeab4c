/* An attempt and what becomes of it, as long as anybody needs it. */
#include "hold.h"

#include "redlock.h"

enum rl_op hf__rl_end_of(const struct rl_hold *h)
{
    return h->held ? RL_DROP : RL_UNDO;
}

uint32_t hf__rl_ahead_ms(const struct rl_hold *h)
{
    return h->lease_ms < RL_AHEAD_MS ? h->lease_ms : RL_AHEAD_MS;
}

void hf__rl_poll_end(struct rl_poll *p)
{
    if (!p->req)
        return;
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    p->req = NULL;
}

void hf__rl_hold_drop(struct redlock *rl, struct rl_hold *h)
{
    struct rl_poll *p;

    if (!h || --h->refs)
        return;
    hf__rl_poll_end(&h->poll);
    while ((p = h->keeps)) {
        h->keeps = p->more;
        hf__rl_poll_end(p);
        rl->core->free(rl->client, p);
    }
    rl->core->free(rl->client, h);
}
