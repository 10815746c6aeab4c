/*
 * What the server says of itself: INFO, and CONFIG if that leaves a question.
 * Which one was sent stands in query->count. A command that is refused is a
 * finding. They are no scripts, because CONFIG may not be called by one.
 */
#include "redis.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOCK_MS 1000 /* so far the clocks may be apart */

enum { ASK_INFO, ASK_FSYNC };

#define FIND(level, subject, ...)                                              \
    r->core->find(r->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

int hf__rd_diagnose_encode(struct redis *r, struct hf__query *q)
{
    static const char *const words[][3] = {
        [ASK_INFO] = {"INFO"}, [ASK_FSYNC] = {"CONFIG", "GET", "appendfsync"}};
    const char *const *word = words[q->count];
    size_t len = word[1] ? 3 : 1;
    struct net_out *o = hf__rd_command(r, &q->req, len, 64);

    if (!o)
        return HF_ENOMEM;
    for (size_t i = 0; i < len; i++)
        hf__rd_put(o, word[i], strlen(word[i]));
    return 0;
}

/* The value of a line "key:value\r\n"; "" if there is none. */
struct value {
    char text[64];
};

static struct value value_of(const char *info, const char *key)
{
    size_t len = strlen(key), n;
    struct value v = {""};

    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) != 0 || line[len] != ':')
            continue;
        line += len + 1;
        n = strcspn(line, "\r\n");
        n = n < sizeof(v.text) ? n : sizeof(v.text) - 1;
        memcpy(v.text, line, n);
        break;
    }
    return v;
}

static bool is(const char *info, const char *key, const char *value)
{
    return strcmp(value_of(info, key).text, value) == 0;
}

static void find_version(struct redis *r, struct hf__query *q, const char *info)
{
    struct value v = value_of(info, "redis_version");
    char *minor;
    long major = strtol(v.text, &minor, 10);

    if (major < 6 || (major == 6 && *minor && strtol(minor + 1, NULL, 10) < 2))
        FIND(WARNING, "version",
             "Redis %s: holdfast is tested with 6.2 and 7.0; use one of these "
             "or a later one",
             v.text);
    else
        FIND(OK, "version", "Redis %s", v.text);
    if (is(info, "cluster_enabled", "1"))
        FIND(
            ERROR, "cluster",
            "the server is part of a Redis Cluster, which refuses the names of "
            "other nodes: use a server without cluster-enabled");
}

/* Redis before 6 does not tell its time. */
static void find_clock(struct redis *r, struct hf__query *q, const char *info)
{
    long long server_ms = atoll(value_of(info, "server_time_usec").text) / 1000;
    long long trip = (r->core->now() - q->req.sent_at) / HF__MS;
    struct timespec t;
    long long apart;

    clock_gettime(CLOCK_REALTIME, &t);
    apart =
        llabs(t.tv_sec * 1000LL + t.tv_nsec / 1000000 - trip / 2 - server_ms);
    if (server_ms && apart > CLOCK_MS + trip)
        FIND(WARNING, "clock",
             "the server's clock and ours are %lld ms apart. Leases go by the "
             "server's clock alone, but it must not jump: run NTP on both "
             "machines",
             apart);
    else if (server_ms)
        FIND(OK, "clock", "the server's clock and ours are %lld ms apart",
             apart);
}

static void find_replicas(struct redis *r, struct hf__query *q,
                          const char *info)
{
    struct value replicas = value_of(info, "connected_slaves");

    if (!is(info, "role", "master"))
        FIND(ERROR, "replication",
             "the server is a replica and refuses to write: connect to its "
             "master, %s:%s",
             value_of(info, "master_host").text,
             value_of(info, "master_port").text);
    else if (strtoul(replicas.text, NULL, 10) < r->doubts.need)
        FIND(ERROR, "replication",
             "the URL says replicas=%u, and %s are connected: no lock can be "
             "acquired. Add replicas, or require fewer",
             r->doubts.need, replicas.text);
    else if (r->doubts.need)
        FIND(WARNING, "replication",
             "%u of %s replicas confirm each lock: after a failover to "
             "another one a lock may have two holders for a while. Check "
             "tokens at the resource (docs/fencing.md)",
             r->doubts.need, replicas.text);
    else if (strcmp(replicas.text, "0") != 0)
        FIND(WARNING, "replication",
             "%s replicas are written to asynchronously: after a failover a "
             "lock may have two holders for a while. Check tokens at the "
             "resource (docs/fencing.md)",
             replicas.text);
    else
        FIND(OK, "replication",
             "a master without replicas: no failover, and no locks while it is "
             "down");
}

static void find_memory(struct redis *r, struct hf__query *q, const char *info)
{
    struct value policy = value_of(info, "maxmemory_policy");
    long long most = atoll(value_of(info, "maxmemory").text);
    long long used = atoll(value_of(info, "used_memory").text);

    if (!most)
        FIND(OK, "eviction", "nothing is evicted: maxmemory is not set");
    else if (strcmp(policy.text, "noeviction") != 0)
        FIND(ERROR, "eviction",
             "maxmemory-policy is %s: when the memory is full the server "
             "deletes locks that are held. Set maxmemory-policy noeviction",
             policy.text);
    else if (used > most - most / 10)
        FIND(WARNING, "eviction",
             "%lld of maxmemory %lld bytes are used; when it is full, locks "
             "cannot be acquired: raise maxmemory",
             used, most);
    else
        FIND(OK, "eviction", "maxmemory-policy is noeviction");
}

/* True: how often the file is written is worth a question. */
static bool find_persistence(struct redis *r, struct hf__query *q,
                             const char *info)
{
    if (is(info, "aof_enabled", "1"))
        return true;
    FIND(WARNING, "persistence",
         "appendonly is off: a restart of the server forgets the holds since "
         "its last snapshot, and somebody else may get their locks. Set "
         "appendonly yes and appendfsync always");
    return false;
}

/* No answer to the command that tells it, for which the user needs a right. */
static void not_known(struct redis *r, struct hf__query *q, const char *subject,
                      const char *what, const char *right,
                      const struct rd_node *reply)
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

static bool find_info(struct redis *r, struct hf__query *q,
                      const struct rd_node *reply)
{
    if (reply->type != REDIS_REPLY_STRING) {
        not_known(r, q, "settings",
                  "version, eviction, persistence and replication are", "+info",
                  reply);
        return false;
    }
    find_version(r, q, reply->text);
    find_clock(r, q, reply->text);
    find_replicas(r, q, reply->text);
    find_memory(r, q, reply->text);
    return find_persistence(r, q, reply->text);
}

static void find_fsync(struct redis *r, struct hf__query *q,
                       const struct rd_node *reply)
{
    const struct rd_node *value = hf__rd_at(reply, 1);

    if (!value || !value->text)
        not_known(r, q, "persistence", "appendonly is on, but appendfsync is",
                  "+config|get", reply);
    else if (strcmp(value->text, "always") == 0)
        FIND(OK, "persistence",
             "appendonly is on and appendfsync is always: holds survive a "
             "restart of the server");
    else
        FIND(WARNING, "persistence",
             "appendfsync is %s: a crash of the machine forgets the last "
             "holds. Set appendfsync always",
             value->text);
}

int hf__rd_diagnosed(struct redis *r, struct hf__query *q,
                     const struct rd_node *reply)
{
    if (q->count == ASK_INFO && find_info(r, q, reply)) {
        q->count = ASK_FSYNC;
        return hf__rd_query_again(r, q);
    }
    if (q->count == ASK_FSYNC)
        find_fsync(r, q, reply);
    return 0;
}
