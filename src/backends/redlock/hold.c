#include "hold.h"

#include "base/list.h"
#include "redlock.h"

void hf__rl_poll_end(struct redlock *rl, struct rl_poll *p)
{
    if (p->req)
        hf__list_remove(rl->polls, p);
    p->req = NULL;
}

void hf__rl_hold_drop(struct redlock *rl, struct rl_hold *h)
{
    struct rl_poll *p;

    if (!h || --h->refs)
        return;
    hf__rl_poll_end(rl, &h->poll);
    while ((p = h->keeps)) {
        h->keeps = p->more;
        hf__rl_poll_end(rl, p);
        rl->core->free(rl->client, p);
    }
    rl->core->free(rl->client, h);
}
