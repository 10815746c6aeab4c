/* What hf_diagnose() reports about one server and about an ensemble. */
#include "zk_faults.h"

#include "../../lib/diagnosis.h"
#include "../../lib/proc.h"

#include <stdio.h>

GROUP("diagnose");
static const struct world_group ensemble = {.name = "ensemble"};

#define LONG_MS 30000 /* a TTL within the server's limits */

static hf_client *open_with(struct world *w, const char *user, int64_t ttl_ms)
{
    return world_open(w, text_of("zk://%s127.0.0.1:%d", user, w->zk->port),
                      CLIENT(.ttl_ms = ttl_ms));
}

CASE(test_diagnose_session)
{
    hf_client *c = open_with(w, "", LONG_MS);

    diagnosis_says(c, HF_LEVEL_OK, "session", "is the ttl");
    diagnosis_says(c, HF_LEVEL_WARNING, "ensemble", "one server");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "within 30 s");
    diagnosis_says(c, HF_LEVEL_OK, "version", "3.5 or later");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    world_ends(w, c);
    c = open_with(w, "", 1000000);
    diagnosis_says(c, HF_LEVEL_WARNING, "session", "maxSessionTimeout");
    world_ends(w, c);
    c = open_with(w, "", HF_LEASE_MIN_MS);
    diagnosis_says(c, HF_LEVEL_WARNING, "session", "minSessionTimeout");
}

CASE(test_diagnose_rights)
{
    hf_client *c = open_with(w, "ann:Geheimnis-1@", LONG_MS);

    diagnosis_says(c, HF_LEVEL_OK, "rights", "only the user of the URL");
    world_ends(w, c);
    /* The nodes must be gone, because only the user who created them may use
     * them. */
    world_is_clean(w);
    c = open_with(w, "", LONG_MS);
    diagnosis_says(c, HF_LEVEL_OK, "rights", "every client");
}

/* Another client holds the lock that the diagnosis tries to acquire. The
 * finding does not say which client. */
CASE(test_diagnose_lock_is_taken)
{
    hf_client *c = open_with(w, "", LONG_MS), *other;
    hf_lock *lock = world_handle(w, c, "holdfast-diagnose", NULL);

    OK(hf_lock_acquire(lock, NULL, &w->err));
    other = world_open(w, w->zk->url, CLIENT(.op_timeout_ms = 1000));
    diagnosis_says(other, HF_LEVEL_ERROR, "locking", "not granted");
    OK(hf_lock_release(lock, &w->err));
}

CASE_OF(ensemble, test_diagnose_counts_the_servers)
{
    hf_client *c = world_open(w, zk_three.url, NULL);

    diagnosis_says(c, HF_LEVEL_OK, "ensemble", "3 servers, of which 1");
    diagnosis_says(c, HF_LEVEL_OK, "hosts", "names 3 of 3");
    world_ends(w, c);
    c = world_open(w, zk_three.server[1].url, NULL);
    diagnosis_says(c, HF_LEVEL_WARNING, "hosts", "names 1 of 3");
}
