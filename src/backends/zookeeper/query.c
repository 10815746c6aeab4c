/* What is asked about a name, and not by a holder. */
#include "zookeeper.h"

int hf__zk_query(void *self, struct hf__query *q)
{
    if (q->req.op == HF__DOWNGRADE)
        return hf__zk_downgrade(self, q);
    return HF_ENOTSUP;
}
