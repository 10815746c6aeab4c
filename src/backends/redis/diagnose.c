/*
 * A diagnosis requests INFO, the rights of the user, and some settings with
 * CONFIG. query->count is the step that was sent last, query->token holds the
 * facts known so far (bits of enum fact), and query->request is the number of
 * replicas. A command that the server refuses leads to a finding, not to a
 * failure of the diagnosis. The diagnosis is not a script, because scripts are
 * not allowed to call CONFIG.
 */
#include "diagnose.h"

#include "backends/common/finding.h"
#include "changes.h"
#include "flights.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "rights.h"

#include <stdlib.h>
#include <string.h>

enum step {
    STEP_INFO,
    STEP_RIGHTS,
    STEP_FSYNC,
    STEP_SAVE,
    STEP_SAFE,
    STEP_EVENTS,
    STEPS
};

enum fact {
    HAS_FILE = 1 << 0,   /* appendonly yes */
    KEEPS_ALL = 1 << 1,  /* all holds survive a crash of the machine */
    KEEPS_MOST = 1 << 2, /* a crash forgets the holds of the last second */
    KEEPS_OLD = 1 << 3,  /* only holds in the last snapshot survive a restart */
    KEEPS_NONE = 1 << 4, /* no hold survives a restart */
    NO_INFO = 1 << 5,    /* INFO is refused */
    NO_CONFIG = 1 << 6,  /* CONFIG GET is refused */
    NO_MASTER = 1 << 7,  /* the server is a replica, or its role is unknown */
};

#define FIND(level, subject, ...)                                              \
    r->core->find(r->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

static void diagnose_pass(struct redis *r, struct hf__query *q,
                          const char *subject, struct rd_verdict v)
{
    r->core->find(r->client, q, v.level, subject, "%s", v.text);
}

/* ---- INFO --------------------------------------------------------------- */

/* Adds a finding about the difference between the server's clock and ours.
 * Redis before 6 does not report its time. */
static void diagnose_find_clock(struct redis *r, struct hf__query *q,
                                const char *info)
{
    int64_t us = hf__rd_number(info, "server_time_usec");

    if (us)
        hf__find_clock(r->core, r->client, q, us,
                       r->core->now() - q->req.sent_at);
}

static void diagnose_find_role(struct redis *r, struct hf__query *q,
                               const char *info)
{
    struct rd_value replicas = hf__rd_value(info, "connected_slaves");

    q->request = strtoul(replicas.text, NULL, 10);
    if (!hf__rd_says(info, "role", "master"))
        q->token |= NO_MASTER;
    if (hf__rd_says(info, "role", ""))
        FIND(WARNING, "replication",
             "the server does not say whether it is a master: whether there is "
             "a failover is not known");
    else if (q->token & NO_MASTER)
        FIND(ERROR, "replication",
             "the server is a replica and refuses to write: connect to its "
             "master, %s:%s",
             hf__rd_value(info, "master_host").text,
             hf__rd_value(info, "master_port").text);
    else if (q->request < r->doubts.need)
        FIND(ERROR, "replication",
             "the URL says replicas=%u, and %s are connected: no lock can be "
             "acquired. Add replicas, or require fewer",
             r->doubts.need, replicas.text);
    else if (!q->request)
        FIND(OK, "replication",
             "a master without replicas: no failover, and no locks while it is "
             "down");
}

/* Returns whether diagnose_find_replicas() can judge a failover: there are
 * replicas, at least as many as replicas= requires, and the server is known to
 * be a master. */
static bool diagnose_has_replicas(const struct redis *r,
                                  const struct hf__query *q)
{
    return q->request && q->request >= r->doubts.need &&
           !(q->token & NO_MASTER);
}

static void diagnose_find_persistence(struct redis *r, struct hf__query *q,
                                      const char *info)
{
    if (hf__rd_says(info, "aof_enabled", "1"))
        q->token |= HAS_FILE;
    if (hf__rd_says(info, "aof_last_write_status", "err"))
        FIND(ERROR, "disk",
             "the server cannot write its append-only file, and refuses to "
             "write: look at its log and its disk");
    else if (hf__rd_says(info, "rdb_last_bgsave_status", "err"))
        FIND(WARNING, "disk",
             "the last snapshot of the server has failed: look at its log and "
             "its disk. It refuses to write unless "
             "stop-writes-on-bgsave-error is no");
}

/* Adds a warning if the server was started lately. If the restart has lost the
 * server's data, the server may grant locks that other clients still believe
 * they hold. */
static void diagnose_find_start(struct redis *r, struct hf__query *q,
                                const char *info)
{
    long long s = hf__rd_number(info, "uptime_in_seconds");
    bool is_known = !hf__rd_says(info, "uptime_in_seconds", "");

    if (is_known && !(q->token & HAS_FILE) && s * 1000 < q->req.lease_ms)
        FIND(WARNING, "restart",
             "the server was started %lld s ago: a client that held a lock "
             "before may believe in it for up to %u s more. Do not restart a "
             "server that forgets its locks while they are used",
             s, q->req.lease_ms / 1000);
}

/* Adds a finding that `what` is not known, because the command that requests it
 * was refused, or because the reply is not understood. */
static void diagnose_not_known(struct redis *r, struct hf__query *q,
                               const char *subject, const char *what,
                               const char *right, const struct rd_node *reply)
{
    const char *why = reply->type == REDIS_REPLY_ERROR
                          ? reply->text
                          : "an answer we do not understand";

    if (hf__rd_is_forbidden(why))
        FIND(WARNING, subject, "%s not known: allow %s to the user", what,
             right);
    else
        FIND(WARNING, subject, "%s not known: %.120s", what, why);
}

static void diagnose_find_info(struct redis *r, struct hf__query *q,
                               const struct rd_node *reply)
{
    if (reply->type != REDIS_REPLY_STRING) {
        diagnose_not_known(r, q, "settings",
                           "version, eviction, persistence and replication are",
                           "+info", reply);
        q->token |= NO_INFO;
        return;
    }
    diagnose_pass(r, q, "version", hf__rd_judge_version(reply->text));
    diagnose_find_clock(r, q, reply->text);
    diagnose_find_role(r, q, reply->text);
    diagnose_find_persistence(r, q, reply->text);
    diagnose_find_start(r, q, reply->text);
    diagnose_pass(r, q, "eviction", hf__rd_judge_memory(reply->text));
    diagnose_pass(r, q, "connections", hf__rd_judge_clients(reply->text));
}

/* ---- CONFIG ------------------------------------------------------------- */

static void diagnose_find_fsync(struct redis *r, struct hf__query *q,
                                const char *value)
{
    q->token |= strcmp(value, "always") == 0 ? KEEPS_ALL : KEEPS_MOST;
    if (q->token & KEEPS_ALL)
        FIND(OK, "persistence",
             "appendonly is on and appendfsync is always: holds survive a "
             "restart of the server");
    else
        FIND(WARNING, "persistence",
             "appendfsync is %s: a crash of the machine forgets the last "
             "holds. Set appendfsync always",
             value);
}

static void diagnose_find_save(struct redis *r, struct hf__query *q,
                               const char *value)
{
    q->token |= *value ? KEEPS_OLD : KEEPS_NONE;
    FIND(WARNING, "persistence",
         "appendonly is off%s: a restart of the server forgets %s, and another "
         "client may get their locks. Set appendonly yes and appendfsync "
         "always",
         *value ? "" : " and so are snapshots",
         *value ? "the holds since its last snapshot" : "every hold");
}

/* Adds a finding on what a failover to a replica does to the locks. */
static void diagnose_find_replicas(struct redis *r, struct hf__query *q,
                                   const char *value)
{
    unsigned long long n = q->request;

    if (r->doubts.need)
        FIND(WARNING, "replication",
             "%u of %llu replicas confirm each lock: after a failover to "
             "another one a lock may have two holders for a while. Check "
             "tokens at the resource (docs/fencing.md)",
             r->doubts.need, n);
    else
        FIND(WARNING, "replication",
             "%llu %s written to asynchronously: after a failover a lock may "
             "have two holders for a while. Check tokens at the resource "
             "(docs/fencing.md), and set replicas=%llu in the URL%s",
             n, n == 1 ? "replica is" : "replicas are", (n + 1) / 2,
             strcmp(value, "0") ? ""
                                : ". Set min-replicas-to-write 1 and "
                                  "min-replicas-max-lag 2 at every server, so "
                                  "that a master that is cut off refuses to "
                                  "write");
}

/* Adds a finding on whether names can be watched. Its level is always OK,
 * because locks do not need notifications. */
static void diagnose_find_events(struct redis *r, struct hf__query *q,
                                 const char *value)
{
    if (hf__rd_publishes_changes(value))
        FIND(OK, "watching",
             "the server announces changes: names can be watched");
    else
        FIND(OK, "watching",
             "the server does not announce changes (" RD_EVENTS_SETTING
             " is \"%s\"), so `holdfast watch' polls. Locks do not need this; "
             "to avoid polling, set it to KA",
             value);
}

static const struct {
    const char *setting; /* for CONFIG GET; NULL for another command */
    void (*find)(struct redis *, struct hf__query *, const char *value);
    const char *unknown; /* first words of the finding if CONFIG is refused; or
                            NULL */
} steps[STEPS] = {
    [STEP_FSYNC] = {"appendfsync", diagnose_find_fsync,
                    "appendonly is on, but appendfsync is"},
    [STEP_SAVE] = {"save", diagnose_find_save,
                   "appendonly is off, and whether there are snapshots is"},
    [STEP_SAFE] = {"min-replicas-to-write", diagnose_find_replicas, NULL},
    [STEP_EVENTS] = {RD_EVENTS_SETTING, diagnose_find_events, NULL},
};

static void diagnose_find_setting(struct redis *r, struct hf__query *q,
                                  const struct rd_node *reply)
{
    const struct rd_node *value = hf__rd_at(reply, 1);

    if (value && value->text) {
        steps[q->count].find(r, q, value->text);
        return;
    }
    q->token |= NO_CONFIG;
    if (steps[q->count].unknown)
        diagnose_not_known(r, q, "persistence", steps[q->count].unknown,
                           "+config|get", reply);
    else if (q->count == STEP_SAFE)
        diagnose_find_replicas(r, q, "");
}

/* ---- conclusion ---------------------------------------------------------- */

static void diagnose_find_promise(struct redis *r, struct hf__query *q)
{
    const char *restart =
        q->token & KEEPS_ALL    ? "holds survive a restart of the server"
        : q->token & KEEPS_MOST ? "a crash of the server's machine forgets the "
                                  "last holds"
        : q->token & KEEPS_OLD  ? "a restart of the server forgets the holds "
                                  "since its last snapshot"
        : q->token & KEEPS_NONE ? "a restart of the server forgets every hold"
                                : "what a restart of the server forgets is not "
                                  "known";

    FIND(OK, HF__PROMISE,
         "a crashed process loses its hold within %u s (the ttl); %s; %s",
         q->req.lease_ms / 1000, restart,
         q->token & (NO_INFO | NO_MASTER)
             ? "whether there is a failover is not known"
         : q->request ? "a failover to a replica may let in a second "
                        "holder"
                      : "there is no failover, and no locks while the "
                        "server is down");
}

static bool diagnose_is_due(const struct redis *r, const struct hf__query *q,
                            enum step step)
{
    switch (step) {
    case STEP_FSYNC:
        return q->token & HAS_FILE;
    case STEP_SAVE:
        return !(q->token & (HAS_FILE | NO_INFO));
    case STEP_SAFE:
        return diagnose_has_replicas(r, q);
    case STEP_EVENTS:
        return !(q->token & NO_CONFIG);
    default:
        return true;
    }
}

int hf__rd_diagnose_encode(struct redis *r, struct hf__query *q)
{
    const char *word[] = {"CONFIG", "GET", steps[q->count].setting};
    size_t len = word[2] ? 3 : 1;
    struct net_out *o;

    if (q->count == STEP_RIGHTS)
        return hf__rd_rights_encode(r, q);
    o = hf__rd_command(r, &q->req, len, 128);
    if (!o)
        return HF_ENOMEM;
    if (q->count == STEP_INFO)
        word[0] = "INFO";
    for (size_t i = 0; i < len; i++)
        hf__rd_put_text(o, word[i]);
    return 0;
}

int hf__rd_diagnosed(struct redis *r, struct hf__query *q,
                     const struct rd_node *reply)
{
    int rc = 0;

    if (q->count == STEP_INFO)
        diagnose_find_info(r, q, reply);
    else if (q->count != STEP_RIGHTS)
        diagnose_find_setting(r, q, reply);
    else if (reply->type == REDIS_REPLY_ERROR)
        FIND(ERROR, "rights", "no script can be run: %.120s", reply->text);
    else
        rc = hf__rd_rights_found(r, q, reply);
    if (rc)
        return rc;
    do
        q->count++;
    while (q->count < STEPS && !diagnose_is_due(r, q, (enum step)q->count));
    if (q->count < STEPS)
        return RD_AGAIN;
    diagnose_find_promise(r, q);
    return 0;
}
