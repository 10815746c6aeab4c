/* hf_client_metrics(). */
#include "base/error.h"
#include "base/futex.h"
#include "core/client.h"
#include "core/counters.h"

int hf_client_metrics(hf_client *c, hf_metrics *out, hf_error *err)
{
    int rc = hf__client_usable(c, err);

    if (rc)
        return rc;
    if (!out)
        return hf__fail(err, HF_EINVAL, "out is NULL");
    if (out->size != sizeof(*out))
        return hf__fail(err, HF_EINVAL,
                        "the metrics were not set by HF_METRICS_INIT");
    HF__HOLDING(&c->mu);
    hf__counters_read_locked(c, out);
    return 0;
}
