/*
 * The backend's table; opening and closing a client.
 *
 *   redis://[user[:password]@]host[:6379][/db]
 *   redis+unix:///path[?db=n]
 *   rediss://...[?cacert=FILE&cert=FILE&key=FILE]   like redis://, with TLS
 *   dialect=redisson (default: Redisson's RLock, RFencedLock, RFairLock,
 *                    RReadWriteLock, RPermitExpirableSemaphore and
 *                    RCountDownLatch)
 *   dialect=string   (redsync, node-redlock, redis-py; the unfair mutex only)
 *   keep_tokens=yes  token counters never expire
 *   replicas=n&replica_timeout=TIME
 *                    a grant or a renewal needs n replicas (replica.c)
 */
#include "redis.h"

#include "backends/common/about.h"
#include "changes.h"
#include "cmd.h"
#include "flights.h"
#include "late_replies.h"
#include "lock.h"
#include "login.h"
#include "pipe.h"
#include "query.h"
#include "renew.h"
#include "replica.h"
#include "requests.h"
#include "subscribe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static void redis_close(void *self)
{
    struct redis *r = self;

    hf__rd_pipe_fini(&r->cmd);
    hf__rd_pipe_fini(&r->sub);
    hf__rd_pipe_fini(&r->changes);
    hf__rd_changes_fini(r);
    hf__rd_late_fini(r);
    hf__rd_doubt_fini(r);
    hf__rd_sub_fini(r);
    hf__rd_login_fini(r->core, r->client, &r->login);
    hf__net_endpoint_fini(&r->peer);
    r->core->free(r->client, r);
}

/* ---- open -------------------------------------------------------------- */

static int redis_parse_dialect(struct redis *r, const struct hf__config *config)
{
    const char *dialect = r->core->option(config->url, "dialect");
    const char *fair = r->core->option(config->url, "fair");

    r->string_dialect = dialect && strcmp(dialect, "string") == 0;
    if (r->string_dialect && fair && strcmp(fair, "yes") == 0)
        return r->core->why(r->client, HF_EINVAL,
                            "fair=yes: dialect=string has unfair locks only; "
                            "dialect=redisson has fair ones");
    if (r->string_dialect) {
        config->caps[HF_MUTEX] &= ~HF_CAP_FAIR;
        config->caps[HF_RWLOCK] = 0;
        config->caps[HF_SEMAPHORE] = 0;
        config->caps[HF_LATCH] = 0;
    }
    if (!dialect || r->string_dialect || strcmp(dialect, "redisson") == 0)
        return 0;
    return r->core->why(r->client, HF_EINVAL,
                        "dialect=%.40s: it must be redisson or string",
                        dialect);
}

static int redis_parse_keep(struct redis *r, const struct hf__config *config)
{
    const char *keep = r->core->option(config->url, "keep_tokens");

    r->keep_tokens = keep && strcmp(keep, "yes") == 0;
    if (!keep || r->keep_tokens || strcmp(keep, "no") == 0)
        return 0;
    return r->core->why(r->client, HF_EINVAL,
                        "keep_tokens=%.40s: must be yes or no", keep);
}

static int redis_parse_unix(struct redis *r, const struct hf__url *url)
{
    if (url->hosts_len || !url->path[0])
        return r->core->why(r->client, HF_EINVAL,
                            "it must be redis+unix:///path/to/socket");
    if (hf__net_set_path(&r->peer, url->path) == 0)
        return 0;
    return r->core->why(r->client, HF_EINVAL,
                        "the socket's path has %zu bytes; it must have "
                        "less than %zu",
                        strlen(url->path),
                        sizeof(((struct sockaddr_un *)0)->sun_path));
}

static int redis_parse_host(struct redis *r, struct hf__url *url)
{
    const struct hf__host *host = &url->hosts[0];

    if (url->hosts_len != 1 || !host->name[0])
        return r->core->why(r->client, HF_EINVAL,
                            "there must be one host, as in "
                            "redis://host:6379/0");
    return hf__net_set_hosts(&r->peer, host, 1, 6379);
}

static int redis_parse(struct redis *r, const struct hf__config *config)
{
    struct hf__url *url = config->url;
    int rc = redis_parse_dialect(r, config);

    if (!rc)
        rc = redis_parse_keep(r, config);
    if (!rc)
        rc = hf__rd_doubt_parse(r, config);
    if (!rc && strcmp(url->scheme, "redis+unix") == 0)
        rc = redis_parse_unix(r, url);
    else if (!rc)
        rc = redis_parse_host(r, url);
    r->op_timeout_ms = config->op_timeout_ms;
    r->listens = config->listens;
    if (rc)
        return rc;
    r->login.doubt = "; is it Redis? With TLS it is rediss://";
    return hf__rd_login(r->core, r->client, config,
                        strcmp(url->scheme, "rediss") ? "rediss://" : NULL,
                        &r->login);
}

/* Sets the client's identity: a random uuid for the server, host and pid for
 * people. All names of a client begin with the client's prefix, so a script
 * that knows a name, the length of the prefix and an owner can construct the
 * owner's channel. The channel contains the prefix so that an ACL can keep
 * tenants apart. */
static int redis_introduce(struct redis *r, const struct hf__config *config)
{
    const char *prefix = r->core->option(config->url, "prefix");
    uint8_t b[24];
    char what[32];
    int rc = r->core->random(b, sizeof(b));

    if (rc)
        return r->core->lasts(r->client, rc, "getrandom failed");
    prefix = prefix ? prefix : "";
    hf__uuid(b, r->uuid);
    memcpy(&r->chance, b + 16, 8);
    r->chance |= 1;
    r->wake_len = (size_t)snprintf(r->wake, sizeof(r->wake),
                                   "holdfast:wake:{%s}:%s", prefix, r->uuid);
    snprintf(what, sizeof(what), "%zu%s ", strlen(prefix),
             r->keep_tokens ? "k" : "");
    r->about_len = hf__about(r->about, sizeof(r->about), what);
    return 0;
}

static int redis_start(struct redis *r, const struct hf__config *config)
{
    int rc = r->peer.hosts ? hf__net_find(&r->peer) : 0;

    hf__rd_login_aim(&r->cmd, &r->peer, &r->login, &r->tags,
                     config->open_timeout_ms, r->op_timeout_ms);
    hf__rd_login_aim(&r->sub, &r->peer, &r->login, &r->tags,
                     config->connect_timeout_ms, r->op_timeout_ms);
    hf__rd_login_aim(&r->changes, &r->peer, &r->login, &r->tags,
                     config->connect_timeout_ms, r->op_timeout_ms);
    r->cmd.link.silence_ms = 2 * r->op_timeout_ms;
    r->cmd.link.lost = "redis: lost the connection";
    r->changes.link.lost = "redis: lost the connection for changes";
    if (!rc)
        hf__link_start(&r->cmd.link, r->core->now());
    return rc;
}

static int redis_open(hf_client *client, const struct hf__core *core,
                      const struct hf__config *config, void **self)
{
    struct redis *r = core->alloc(client, sizeof(*r));
    int rc;

    if (!r)
        return HF_ENOMEM;
    r->core = core;
    r->client = client;
    r->peer.core = r->chans.table.core = core;
    r->peer.client = r->chans.table.client = client;
    hf__rd_pipe_init(&r->cmd, core, client, &hf__rd_cmd, r,
                     sizeof(struct rd_flight));
    hf__rd_pipe_init(&r->sub, core, client, &hf__rd_sub, r,
                     sizeof(struct rd_sent));
    hf__rd_pipe_init(&r->changes, core, client, &hf__rd_changes, r,
                     sizeof(struct rd_sent));
    r->doubts.decided = hf__rd_decided;
    rc = redis_parse(r, config);
    if (!rc)
        rc = redis_introduce(r, config);
    if (!rc)
        rc = redis_start(r, config);
    if (rc) {
        redis_close(r);
        return rc;
    }
    *self = r;
    return 0;
}

static int redis_opened(void *self)
{
    return hf__link_opened(&((struct redis *)self)->cmd.link);
}

/* ---- driving ----------------------------------------------------------- */

static void redis_ready(void *self, uint32_t tag, uint32_t events, hf__time now)
{
    struct redis *r = self;

    if (!hf__link_ready(&r->cmd.link, tag, events, now) &&
        !hf__link_ready(&r->sub.link, tag, events, now))
        hf__link_ready(&r->changes.link, tag, events, now);
}

static void redis_advance(void *self, hf__time now)
{
    struct redis *r = self;

    hf__link_advance(&r->cmd.link, now);
    hf__rd_sub_move(r, now);
    hf__rd_changes_move(r, now);
    hf__rd_late_move(r, now);
    hf__rd_pump(r);
}

static hf__time redis_next_timeout(void *self)
{
    struct redis *r = self;
    hf__time at =
        hf__min_time(hf__link_timeout(&r->cmd.link), hf__rd_sub_timeout(r));

    at = hf__min_time(at, hf__rd_changes_timeout(r));
    return r->late ? hf__min_time(at, hf__rd_late_timeout(r)) : at;
}

const struct hf__backend hf__rd_backend = {
    .abi = HF__ABI,
    .name = "redis",
    .caps = {[HF_MUTEX] = HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE |
                          HF_CAP_EVENTS | HF_CAP_INSPECT | HF_CAP_WANTED,
             [HF_RWLOCK] = HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE |
                           HF_CAP_EVENTS | HF_CAP_INSPECT | HF_CAP_WANTED,
             [HF_SEMAPHORE] = HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE |
                              HF_CAP_EVENTS | HF_CAP_INSPECT | HF_CAP_WANTED,
             [HF_LATCH] = HF_CAP_UNFAIR | HF_CAP_EVENTS | HF_CAP_INSPECT},
    .fair_by_default = false,
    .options = "dialect, db, keep_tokens, replicas, replica_timeout, cacert, "
               "cert, key",
    .taken = "it is no longer on the server (broken, deleted, evicted, or the "
             "server restarted empty)",
    .open = redis_open,
    .opened = redis_opened,
    .close = redis_close,
    .ready = redis_ready,
    .advance = redis_advance,
    .next_timeout = redis_next_timeout,
    .attach = hf__rd_attach,
    .detach = hf__rd_detach,
    .attempt = hf__rd_attempt,
    .release = hf__rd_release,
    .abandon = hf__rd_abandon,
    .renew = hf__rd_renew,
    .query = hf__rd_query,
    .unlisten = hf__rd_unlisten,
};
