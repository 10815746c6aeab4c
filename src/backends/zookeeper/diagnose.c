/* Reports findings about the ensemble, from the node that describes it, and
 * about the session that the server has granted. */
#include "diagnose.h"

#include "backends/common/finding.h"
#include "call.h"
#include "query.h"
#include "zookeeper.h"

#include <string.h>

#define CONFIG "/zookeeper/config"

#define FIND(level, subject, ...)                                              \
    z->core->find(z->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

static void diagnose_find_session(struct zk *z, struct hf__query *q)
{
    if (z->timeout_ms > z->ttl_ms)
        FIND(WARNING, "session",
             "the ttl is %u ms, but the server gives no session of less than "
             "%u ms: a dead holder keeps others out for that long. Lower "
             "minSessionTimeout or tickTime, or raise ttl",
             z->ttl_ms, z->timeout_ms);
    else if (z->timeout_ms < z->ttl_ms)
        FIND(WARNING, "session",
             "the ttl is %u ms, but the server gives no session of more than "
             "%u ms: a client that cannot reach it loses its holds earlier. "
             "Raise maxSessionTimeout, or lower ttl",
             z->ttl_ms, z->timeout_ms);
    else
        FIND(OK, "session", "the session's timeout is the ttl, %u ms",
             z->timeout_ms);
}

static void diagnose_find_rights(struct zk *z, struct hf__query *q)
{
    if (z->secret)
        FIND(OK, "rights",
             "only the user of the URL may use what holdfast creates");
    else
        FIND(OK, "rights",
             "every client of the servers may break locks; user:password@ in "
             "the URL keeps others out");
}

/* Counts the voting servers. The lines are
 * "server.1=host:port:port:participant;port"; an observer does not vote. */
static unsigned diagnose_voters(const char *config, int len)
{
    const char *end = config + len, *line = config;
    unsigned n = 0;

    while (len > 0 && line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t of = (size_t)((stop ? stop : end) - line);

        if (of > 7 && memcmp(line, "server.", 7) == 0 &&
            !memmem(line, of, ":observer", 9))
            n++;
        line += of + 1;
    }
    return n;
}

static void diagnose_find_promise(struct zk *z, struct hf__query *q)
{
    FIND(OK, HF__PROMISE,
         "a crashed process loses its hold within %u s (its session) and a "
         "tick of the server; holds survive if the servers are back within "
         "that time; a majority of the servers has stored every answer",
         (z->timeout_ms + 999) / 1000);
}

static void diagnose_on_config(void *owner, int rc,
                               const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_query *base = owner;
    struct hf__query *q = base->q;
    struct hf__quorum quorum = {"ensemble", "server", 0, z->hosts};

    if (rc == ZOK) {
        FIND(OK, "version", "ZooKeeper 3.5 or later, with container nodes");
        quorum.voters = diagnose_voters(reply->text, reply->len);
        hf__find_quorum(z->core, z->client, q, &quorum);
    } else if (rc == ZNONODE) {
        FIND(ERROR, "version",
             "there is no " CONFIG ", so the server is older than "
             "ZooKeeper 3.5 and has no container nodes: use 3.5 or later");
    } else if (!hf__zk_lost(rc)) {
        FIND(WARNING, "ensemble",
             CONFIG " may not be read (%s), so the size of the ensemble is "
                    "unknown: grant READ on it to all users",
             zerror(rc));
    }
    if (!hf__zk_lost(rc)) {
        diagnose_find_promise(z, q);
        diagnose_find_session(z, q);
        diagnose_find_rights(z, q);
    }
    hf__zk_query_end(base, hf__zk_lost(rc) ? HF_EUNKNOWN : HF__DONE);
}

int hf__zk_diagnose_query(struct zk *z, struct hf__query *q)
{
    int rc;
    struct zk_query *base = hf__zk_query_new(z, q, sizeof(*base), &rc);

    if (!base)
        return rc;
    rc = hf__zk_get(z, CONFIG, NULL, diagnose_on_config, base);
    if (!rc)
        return HF__PENDING;
    hf__zk_query_free(base);
    return rc;
}
