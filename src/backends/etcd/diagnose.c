#include "diagnose.h"

#include "backends/common/finding.h"

#include "etcd.h"
#include "exchange.h"
#include "query.h"

#include <stdio.h>
#include <string.h>

#define QUOTA_DEFAULT (INT64_C(2) << 30)

#define FIND(level, subject, ...)                                              \
    e->core->find(e->client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

struct checkup {
    struct et_query base;
    bool is_first_over;
};

static const struct grpc_method status = {
    .path = "/etcdserverpb.Maintenance/Status",
    .most = ET_ANSWER,
    .over = hf__et_query_over};
static const struct grpc_method members = {
    .path = "/etcdserverpb.Cluster/MemberList",
    .most = ET_ANSWER,
    .over = hf__et_query_over};

static int diagnose_pack(struct et_query *x)
{
    Etcd__Status a = ETCD__STATUS__INIT;
    Etcd__MemberList b = ETCD__MEMBER_LIST__INIT;
    bool is_first = !((struct checkup *)x)->is_first_over;

    x->call.method = is_first ? &status : &members;
    return hf__et_pack(&x->call, is_first ? (void *)&a : (void *)&b);
}

static void diagnose_find_lease(struct etcd *e, struct hf__query *q)
{
    if (e->term_ms > e->ttl_s * 1000)
        FIND(WARNING, "lease",
             "the ttl is %u s, but the server gives no lease of less than "
             "%u s: a dead holder keeps others out for that long. Lower "
             "--election-timeout, or raise ttl",
             e->ttl_s, e->term_ms / 1000);
    else
        FIND(OK, "lease", "the lease lasts as long as the ttl, %u s", e->ttl_s);
}

static void diagnose_find_rights(struct etcd *e, struct hf__query *q)
{
    if (e->user[0] && !e->g.token)
        FIND(WARNING, "rights",
             "authentication is not enabled at the server: the user is "
             "ignored, and every client may break locks");
    else if (e->user[0])
        FIND(OK, "rights", "the server knows this client as a user");
    else
        FIND(OK, "rights",
             "this client has no user: every client of the server may break "
             "locks, unless authentication is enabled there");
}

/* Reports the version. Servers 3.5.0 to 3.5.4 may stop when a client is killed
 * while they serve its read: see etcd-io/etcd issue 14110. */
static void diagnose_find_version(struct etcd *e, struct hf__query *q,
                                  const char *version)
{
    unsigned patch;

    if (sscanf(version, "3.5.%5u", &patch) == 1 && patch < 5)
        FIND(WARNING, "version",
             "etcd %.40s may stop when a client is killed: use 3.5.5 or later",
             version);
    else
        FIND(OK, "version", "etcd %.40s", version);
}

/* Reports alarms and other errors. Returns false if there are none. */
static bool diagnose_find_errors(struct etcd *e, struct hf__query *q,
                                 const Etcd__StatusAnswer *a)
{
    for (size_t i = 0; i < a->n_errors; i++)
        if (strstr(a->errors[i], "NOSPACE"))
            FIND(ERROR, "space",
                 "the database is full (%lld bytes), and the server refuses to "
                 "write: compact and defragment it, raise "
                 "--quota-backend-bytes, then run etcdctl alarm disarm",
                 (long long)a->db_size);
        else
            FIND(ERROR, "alarm", "the server says: %.200s. Look at its log",
                 a->errors[i]);
    return a->n_errors;
}

static void diagnose_find_space(struct etcd *e, struct hf__query *q,
                                const Etcd__StatusAnswer *a)
{
    bool is_known = a->db_size_quota > 0;
    int64_t most = is_known ? a->db_size_quota : QUOTA_DEFAULT;

    if (a->db_size / 4 > most / 5)
        FIND(WARNING, "space",
             "the database has %lld bytes, and %s is %lld: when it is full, "
             "the server refuses to write. Compact and defragment it, or raise "
             "--quota-backend-bytes",
             (long long)a->db_size,
             is_known ? "its quota" : "the default of its quota",
             (long long)most);
    else
        FIND(OK, "space", "the database has %lld of %lld bytes%s",
             (long long)a->db_size, (long long)most,
             is_known ? "" : " (the default of its quota)");
}

static int diagnose_find_server(struct etcd *e, struct hf__query *q,
                                const uint8_t *p, size_t len)
{
    Etcd__StatusAnswer *a = etcd__status_answer__unpack(&e->memory, len, p);

    if (!a)
        return HF_EPROTO;
    diagnose_find_version(e, q, a->version);
    if (!diagnose_find_errors(e, q, a))
        diagnose_find_space(e, q, a);
    if (a->is_learner)
        FIND(ERROR, "cluster",
             "this member is a learner, which serves no locks: connect to a "
             "voting member, or promote it");
    etcd__status_answer__free_unpacked(a, &e->memory);
    return HF__PENDING;
}

static void diagnose_find_rest(struct etcd *e, struct hf__query *q)
{
    FIND(OK, HF__PROMISE,
         "a crashed process loses its hold within %u s (its lease, which a new "
         "leader restarts); holds survive if the servers are back "
         "within that time; a majority of the members has stored every answer",
         e->term_ms / 1000 + 1);
    diagnose_find_lease(e, q);
    diagnose_find_rights(e, q);
}

static int diagnose_find_members(struct etcd *e, struct hf__query *q,
                                 const uint8_t *p, size_t len)
{
    Etcd__MemberListAnswer *a =
        etcd__member_list_answer__unpack(&e->memory, len, p);
    struct hf__quorum quorum = {"cluster", "member", 0, e->peer.hosts};

    if (!a)
        return HF_EPROTO;
    for (size_t i = 0; i < a->n_members; i++)
        quorum.voters += !a->members[i]->is_learner;
    etcd__member_list_answer__free_unpacked(a, &e->memory);
    hf__find_quorum(e->core, e->client, q, &quorum);
    diagnose_find_rest(e, q);
    return HF__DONE;
}

/* Handles a refusal, for example because the user lacks the right to read the
 * status. A refusal is a finding, and does not fail the query. */
static int diagnose_refused(struct et_query *x, int code)
{
    struct etcd *e = x->e;
    struct hf__query *q = x->q;

    (void)code;
    FIND(WARNING, "cluster", "the %s may not be read: %.120s",
         x->call.method == &status ? "status" : "list of members",
         x->call.text);
    diagnose_find_rest(e, q);
    return HF__DONE;
}

static int diagnose_understood(struct et_query *x, const uint8_t *p, size_t len)
{
    struct checkup *c = (struct checkup *)x;

    if (c->is_first_over)
        return diagnose_find_members(x->e, x->q, p, len);
    c->is_first_over = true;
    return diagnose_find_server(x->e, x->q, p, len);
}

int hf__et_diagnose(struct etcd *e, struct hf__query *q)
{
    static const struct et_play play = {.size = sizeof(struct checkup),
                                        .pack = diagnose_pack,
                                        .read = diagnose_understood,
                                        .refused = diagnose_refused};
    int rc;
    struct checkup *c = hf__et_query_new(e, q, &play, "", &rc);

    return c ? hf__et_query_begin(&c->base) : rc;
}
