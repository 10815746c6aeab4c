#include "lease.h"

#include "etcd.h"
#include "exchange.h"
#include "lock_state.h"

static hf__time lease_part(const struct etcd *e, unsigned of)
{
    return (hf__time)(e->term_ms ? e->term_ms : 1000) * HF__MS / of;
}

void hf__et_keep(struct etcd *e, hf__time now)
{
    Etcd__KeepAlive m = ETCD__KEEP_ALIVE__INIT;

    e->keep_at = now + lease_part(e, 3);
    if (e->g.link.state != NET_UP || e->kept_len == ET_KEPT || !e->lease)
        return;
    m.id = e->lease;
    if (hf__et_pack(&e->keep, &m) == 0 &&
        (!hf__grpc_is_idle(&e->keep) || hf__grpc_start(&e->keep, 0) == 0))
        e->kept_at[e->kept_len++] = now;
    else
        e->keep_at = now + 100 * HF__MS;
    /* If the member is dead, the missing answer to the PING reveals that in
     * time to renew the lease at another member. */
    if (now - e->g.pinged_at >= lease_part(e, 4))
        hf__grpc_ping(&e->g, now);
}

/* Before the connection ends, the client waits for the answers to DROPs under
 * way. Only these answers tell whether the entries still existed. */
int hf__et_lease_over(struct etcd *e, const char *why)
{
    e->lease = e->guard = e->heard = e->kept_rev = 0;
    e->is_granted = false;
    e->proved = 0;
    for (struct et_lock *l = e->locks; l; l = l->next)
        hf__et_lock_over(l, why);
    return hf__grpc_leave(&e->g, why);
}
