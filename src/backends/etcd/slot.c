#include "slot.h"

#include "etcd.h"
#include "watch.h"

bool hf__et_is_down(struct etcd *e)
{
    e->put_off = e->put_off || !hf__link_wanted(&e->g.link) ||
                 e->g.leaves_at != HF__NEVER || e->g.failed;
    return e->put_off;
}

hf__time hf__et_timeout(const struct etcd *e)
{
    hf__time at = hf__grpc_timeout(&e->g);

    if (e->g.link.state != NET_UP)
        return at;
    return hf__min_time(at, hf__min_time(e->keep_at, hf__et_watch_timeout(e)));
}

void hf__et_sent(struct etcd *e, const struct hf__req *req)
{
    if (!req->parked)
        hf__grpc_flush(&e->g);
    e->core->due(e->client, hf__et_timeout(e));
}
