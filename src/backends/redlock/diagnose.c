/* A diagnosis: what the servers say about themselves. INFO is sent to each
 * server as soon as it is connected. The findings are written when all servers
 * that accept a connection have replied, or after half of op_timeout. */
#include "diagnose.h"

#include "backends/redis/pipe.h"
#include "backends/redis/reply.h"
#include "backends/redis/rules.h"
#include "base/list.h"
#include "hold.h"
#include "redlock.h"
#include "server.h"
#include "servers.h"

#include <stdlib.h>
#include <string.h>

struct rl_checkup {
    struct rl_checkup *next, *prev; /* in redlock.checkups */
    struct hf__query *q;            /* NULL once the diagnosis has ended */
    hf__time until;
    size_t due;         /* INFOs under way, plus 1 until the diagnosis ends */
    uint16_t requested; /* a bit for each server to which INFO was sent */
    struct seen {
        bool answered;
        struct rd_verdict version, memory;
        bool is_replica, has_replicas, has_file;
        int64_t ahead_us; /* the server's clock minus ours, in us */
    } seen[HF__HOSTS];
};

#define FIND(level, subject, ...)                                              \
    rl->core->find(rl->client, c->q, HF_LEVEL_##level, subject, __VA_ARGS__)

static const char *diagnose_where(const struct redlock *rl, size_t i)
{
    return rl->server[i].pipe.link.where;
}

static void diagnose_find_servers(struct redlock *rl, struct rl_checkup *c)
{
    hf__time now = rl->core->now();
    int usable = __builtin_popcount(hf__rl_usable(rl, now));
    enum hf_level level = (size_t)usable == rl->len       ? HF_LEVEL_OK
                          : (size_t)usable < rl->majority ? HF_LEVEL_ERROR
                                                          : HF_LEVEL_WARNING;
    char why[400];

    if (level == HF_LEVEL_OK) {
        FIND(OK, "servers", "%zu servers answer, of which %zu may be down",
             rl->len, rl->len - rl->majority);
        return;
    }
    hf__rl_describe(rl, NULL, now, why, sizeof(why));
    rl->core->find(rl->client, c->q, level, "servers",
                   "%d of %zu servers can be asked, and %zu must: %s. Start "
                   "them, or wait until they vote",
                   usable, rl->len, rl->majority, why);
}

static size_t diagnose_host_len(const struct redlock *rl, size_t i)
{
    return (size_t)(strrchr(rl->server[i].peer.hosts, ':') -
                    rl->server[i].peer.hosts);
}

/* Returns how many servers are on the same host as the i-th. */
static size_t diagnose_same_host(const struct redlock *rl, size_t i)
{
    const char *host = rl->server[i].peer.hosts;
    size_t len = diagnose_host_len(rl, i), n = 0;

    for (size_t k = 0; k < rl->len; k++)
        n += diagnose_host_len(rl, k) == len &&
             memcmp(host, rl->server[k].peer.hosts, len) == 0;
    return n;
}

static void diagnose_find_hosts(struct redlock *rl, struct rl_checkup *c)
{
    for (size_t i = 0; i < rl->len; i++) {
        size_t n = diagnose_same_host(rl, i);

        if (rl->len - n >= rl->majority)
            continue;
        FIND(
            WARNING, "independence",
            "%zu of %zu servers are on host %.*s: when it is down, no lock can "
            "be acquired. Use a host for each server",
            n, rl->len, (int)diagnose_host_len(rl, i),
            rl->server[i].peer.hosts);
        return;
    }
    FIND(OK, "independence", "locks survive the loss of any one host");
}

/* Returns whether all servers have replied. If not, adds a finding, and the
 * caller omits the findings that say "all servers" or "no server". A server
 * without a reply may be down, or may not allow the user to call INFO. */
static bool diagnose_find_silent(struct redlock *rl, struct rl_checkup *c)
{
    size_t silent = 0, first = 0;

    for (size_t i = rl->len; i-- > 0;)
        if (!c->seen[i].answered) {
            silent++;
            first = i;
        }
    if (silent)
        FIND(WARNING, "settings",
             "version, eviction, replication, persistence and clock of %zu of "
             "%zu servers (%s%s) are not known: allow +info to the user, or "
             "start them",
             silent, rl->len, diagnose_where(rl, first),
             silent > 1 ? ", ..." : "");
    return !silent;
}

static void diagnose_find_replicas(struct redlock *rl, struct rl_checkup *c,
                                   bool whole)
{
    bool any = false;

    for (size_t i = 0; i < rl->len; i++) {
        const struct seen *s = &c->seen[i];

        any = any || s->is_replica || s->has_replicas;
        if (s->is_replica)
            FIND(ERROR, "replication",
                 "%s is a replica and refuses to write: Redlock needs masters "
                 "that are independent of each other",
                 diagnose_where(rl, i));
        else if (s->has_replicas)
            FIND(WARNING, "replication",
                 "%s has replicas: one that takes over lacks the last votes, "
                 "and a lock may have two holders. Use servers without "
                 "failover",
                 diagnose_where(rl, i));
    }
    if (!any && whole)
        FIND(OK, "replication", "no server has replicas, as it should be");
}

static void diagnose_find_persistence(struct redlock *rl, struct rl_checkup *c,
                                      bool whole)
{
    size_t without = 0, first = 0;

    for (size_t i = rl->len; i-- > 0;)
        if (c->seen[i].answered && !c->seen[i].has_file) {
            without++;
            first = i;
        }
    if (rl->max_lease_ms)
        FIND(OK, "persistence",
             "a server that was restarted has no vote for %u s (max_lease), so "
             "that nothing depends on what it keeps",
             rl->max_lease_ms / 1000);
    else if (without)
        FIND(WARNING, "persistence",
             "max_lease=0 says that servers keep their keys through a restart, "
             "but appendonly is off at %zu of %zu (%s%s): after a restart a "
             "lock may have two holders. Set appendonly yes and appendfsync "
             "always at each, or remove max_lease=0",
             without, rl->len, diagnose_where(rl, first),
             without > 1 ? ", ..." : "");
    else if (whole)
        FIND(OK, "persistence",
             "max_lease=0, and appendonly is on at all servers; appendfsync "
             "has to be always");
}

/* Adds a finding about the differences between the servers' clocks, because
 * tokens are based on these clocks. */
static void diagnose_find_clocks(struct redlock *rl, struct rl_checkup *c)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    long long apart;

    for (size_t i = 0; i < rl->len; i++) {
        int64_t us = c->seen[i].ahead_us;

        if (!c->seen[i].answered)
            continue;
        low = us < low ? us : low;
        high = us > high ? us : high;
    }
    if (high < low)
        return; /* no server has answered */
    apart = (high - low) / 1000;
    if (apart > RL_AHEAD_MS)
        FIND(WARNING, "clock",
             "the clocks of the servers are up to %lld ms apart: tokens cost a "
             "second round, and after a restart they may go back. Run NTP on "
             "all of them",
             apart);
    else
        FIND(OK, "clock", "the clocks of the servers are up to %lld ms apart",
             apart);
}

/* Adds a finding for each server with a problem, or a single finding if no
 * server has one. */
static void diagnose_find_each(struct redlock *rl, struct rl_checkup *c,
                               const char *subject, size_t at, const char *well,
                               bool whole)
{
    bool all = whole;

    for (size_t i = 0; i < rl->len; i++) {
        const struct rd_verdict *v =
            (const void *)((const char *)&c->seen[i] + at);

        if (!c->seen[i].answered || v->level == HF_LEVEL_OK)
            continue;
        all = false;
        rl->core->find(rl->client, c->q, v->level, subject, "%s: %s",
                       diagnose_where(rl, i), v->text);
    }
    if (all)
        FIND(OK, subject, "%s", well);
}

/* Adds a finding with the rights that a user needs, without checking them; the
 * finding "locking" shows whether the rights of this user suffice. */
static void diagnose_find_rights(struct redlock *rl, struct rl_checkup *c)
{
    char rules[600];

    if (rl->login.user[0])
        FIND(OK, "rights",
             "a user of these locks needs the following at each server. " RD_RUN
             "%s%s%s",
             rl->login.user, rl->login.db ? " +select" : "",
             hf__rd_rules(rules, sizeof(rules), RD_RULES_REDLOCK, c->q->name,
                          false));
}

static void diagnose_finish(struct redlock *rl, struct rl_checkup *c)
{
    bool whole;

    FIND(OK, HF__PROMISE,
         "a crashed process loses its hold within %u s (the ttl); holds "
         "survive while %zu of %zu servers are up and were not restarted; a "
         "server's clock that jumps forward may let in a second holder",
         c->q->req.lease_ms / 1000, rl->majority, rl->len);
    diagnose_find_servers(rl, c);
    diagnose_find_hosts(rl, c);
    whole = diagnose_find_silent(rl, c);
    diagnose_find_each(rl, c, "version", offsetof(struct seen, version),
                       "all servers have Redis 6.2 or later", whole);
    diagnose_find_each(rl, c, "eviction", offsetof(struct seen, memory),
                       "nothing is evicted at any server", whole);
    diagnose_find_replicas(rl, c, whole);
    diagnose_find_persistence(rl, c, whole);
    diagnose_find_clocks(rl, c);
    diagnose_find_rights(rl, c);
}

void hf__rl_checkup_drop(struct redlock *rl, struct rl_checkup *c)
{
    if (c && --c->due == 0)
        rl->core->free(rl->client, c);
}

static void diagnose_end(struct redlock *rl, struct rl_checkup *c)
{
    diagnose_finish(rl, c);
    hf__list_remove(rl->checkups, c);
    c->q = NULL;
    hf__rl_checkup_drop(rl, c);
}

void hf__rl_checkups_fini(struct redlock *rl)
{
    struct rl_checkup *c;

    while ((c = rl->checkups)) {
        rl->checkups = c->next;
        hf__rl_checkup_drop(rl, c);
    }
}

static bool diagnose_request_info(struct rl_server *, struct rl_checkup *);

/* Returns whether a connection is being established, and no earlier attempt to
 * do so has failed. */
static bool diagnose_is_coming(const struct net_link *l)
{
    return (l->state == NET_CONNECTING || l->state == NET_GREETING) &&
           !l->open_code;
}

/* Sends INFO to newly connected servers. Returns whether the diagnosis can end
 * now. */
static bool diagnose_move(struct redlock *rl, struct rl_checkup *c,
                          hf__time now)
{
    bool coming = false;

    for (size_t i = 0; i < rl->len; i++) {
        if (c->requested & 1u << i)
            continue;
        if (diagnose_request_info(&rl->server[i], c)) {
            c->requested |= (uint16_t)(1u << i);
            c->due++;
        }
        coming = coming || diagnose_is_coming(&rl->server[i].pipe.link);
    }
    return c->until <= now || (c->due == 1 && !coming);
}

void hf__rl_checkup_move(struct redlock *rl, hf__time now)
{
    struct rl_checkup *c, *next;

    for (c = rl->checkups; c; c = next) {
        struct hf__req *req = &c->q->req;

        next = c->next;
        if (!diagnose_move(rl, c, now))
            continue;
        diagnose_end(rl, c);
        req->result = HF__DONE;
        rl->core->done(rl->client, req);
    }
}

hf__time hf__rl_checkup_timeout(const struct redlock *rl)
{
    hf__time at = HF__NEVER;

    for (const struct rl_checkup *c = rl->checkups; c; c = c->next)
        at = hf__min_time(at, c->until);
    return at;
}

static void diagnose_read_info(struct seen *s, const char *info, hf__time now,
                               hf__time sent)
{
    s->answered = true;
    s->version = hf__rd_judge_version(info);
    s->memory = hf__rd_judge_memory(info);
    s->is_replica = !hf__rd_says(info, "role", "master");
    s->has_replicas = hf__rd_number(info, "connected_slaves") > 0;
    s->has_file = hf__rd_says(info, "aof_enabled", "1");
    s->ahead_us = hf__rd_number(info, "server_time_usec") -
                  (sent + (now - sent) / 2) / 1000;
}

static int diagnose_info_reply(struct rd_pipe *p, struct rd_sent *sent,
                               const struct rd_node *reply, hf__time now)
{
    struct rl_server *s = p->owner;
    struct rl_checkup *c = ((struct rl_flight *)sent)->checkup;

    if (reply->type == REDIS_REPLY_STRING)
        diagnose_read_info(&c->seen[hf__rl_index(s)], reply->text, now,
                           sent->net.at);
    hf__rl_checkup_drop(s->rl, c);
    return 0;
}

static bool diagnose_request_info(struct rl_server *s, struct rl_checkup *c)
{
    struct rl_flight *f;

    if (s->pipe.link.state != NET_UP || s->pipe.link.stream.broken)
        return false;
    f = hf__rd_pipe_send(&s->pipe, diagnose_info_reply, 1, 64);
    if (!f)
        return false;
    f->checkup = c;
    hf__rd_put_count(&s->pipe.link.stream.out, '*', 1);
    hf__rd_put_text(&s->pipe.link.stream.out, "INFO");
    return true;
}

int hf__rl_query(void *self, struct hf__query *q)
{
    struct redlock *rl = self;
    hf__time now = rl->core->now();
    struct rl_checkup *c;

    if (q->req.op != HF__DIAGNOSE)
        return HF_ENOTSUP;
    c = rl->core->alloc(rl->client, sizeof(*c));
    if (!c)
        return HF_ENOMEM;
    c->q = q;
    c->due = 1;
    c->until = now + rl->op_timeout_ms / 2 * HF__MS;
    hf__list_add(rl->checkups, c);
    if (diagnose_move(rl, c, now)) {
        diagnose_end(rl, c); /* later replies are ignored */
        return HF__DONE;
    }
    rl->core->due(rl->client, c->until);
    hf__rl_flush(rl);
    return HF__PENDING;
}
