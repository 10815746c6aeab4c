/*
 * The backend's table, and a client's beginning and end.
 *
 *   redis://[user[:password]@]host[:6379][/db]
 *   redis+unix:///path[?db=n]
 *   rediss://...[?cacert=FILE&cert=FILE&key=FILE]   like redis://, with TLS
 *   dialect=redisson (default: Redisson's RLock, RFencedLock, RFairLock,
 *                    RReadWriteLock, RPermitExpirableSemaphore and
 *                    RCountDownLatch)
 *   dialect=string   (redsync, node-redlock, redis-py; the unfair mutex only)
 *   keep_tokens=yes  the counters of tokens never expire
 */
#include "redis.h"

#include "../../net/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define BACKOFF_MAX_MS 1000

uint32_t hf__rd_jitter(struct redis *r, uint32_t below)
{
    /* xorshift64*: nothing secret hangs on it. */
    r->chance ^= r->chance >> 12;
    r->chance ^= r->chance << 25;
    r->chance ^= r->chance >> 27;
    return (uint32_t)((r->chance * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

static char *copy(struct redis *r, const char *text)
{
    size_t size = strlen(text) + 1;
    char *p = r->core->alloc(r->client, size);

    return p ? memcpy(p, text, size) : NULL;
}

static void wipe(struct redis *r, char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    r->core->free(r->client, secret);
}

static void free_all(struct redis *r)
{
    hf__rd_pipe_fini(&r->cmd);
    hf__rd_pipe_fini(&r->sub);
    hf__rd_pipe_fini(&r->ear);
    hf__rd_ear_fini(r);
    hf__rd_late_fini(r);
    hf__rd_sub_fini(r);
    wipe(r, r->password);
    r->core->free(r->client, r->user);
    hf__net_endpoint_fini(&r->peer);
    hf__tls_free(r->cmd.link.stream.tls);
    r->core->free(r->client, r);
}

/* ---- open -------------------------------------------------------------- */

static int parse_db(struct redis *r, const char *text)
{
    char *end;
    unsigned long db = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || db > 65535)
        return r->core->why(r->client, HF_EINVAL,
                            "database \"%.40s\": a number from 0 to 65535 "
                            "would be right",
                            text);
    r->cmd.db = (uint32_t)db;
    return 0;
}

static int parse_dialect(struct redis *r, const struct hf__config *config)
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
                        "dialect=%.40s: redisson or string would be right",
                        dialect);
}

static int parse_keep(struct redis *r, const struct hf__config *config)
{
    const char *keep = r->core->option(config->url, "keep_tokens");

    r->keep_tokens = keep && strcmp(keep, "yes") == 0;
    if (!keep || r->keep_tokens || strcmp(keep, "no") == 0)
        return 0;
    return r->core->why(r->client, HF_EINVAL,
                        "keep_tokens=%.40s: must be yes or no", keep);
}

static int parse_unix(struct redis *r, const struct hf__url *url)
{
    if (url->hosts_len || !url->path[0])
        return r->core->why(r->client, HF_EINVAL,
                            "redis+unix:///path/to/socket would be right");
    if (hf__net_set_path(&r->peer, url->path) == 0)
        return 0;
    return r->core->why(r->client, HF_EINVAL,
                        "the socket's path has %zu bytes; less than %zu would "
                        "be right",
                        strlen(url->path),
                        sizeof(((struct sockaddr_un *)0)->sun_path));
}

static int parse_host(struct redis *r, struct hf__url *url)
{
    const struct hf__host *host = &url->hosts[0];
    int rc;

    if (url->hosts_len != 1 || !host->name[0])
        return r->core->why(r->client, HF_EINVAL,
                            "one host would be right, as in "
                            "redis://host:6379/0");
    rc = hf__net_set_hosts(&r->peer, host, 1, 6379);
    if (rc)
        return rc;
    if (!url->path[0] || !url->path[1])
        return 0;
    if (r->core->option(url, "db"))
        return r->core->why(r->client, HF_EINVAL,
                            "the database is given twice, in the path and by "
                            "db=; it must be given once");
    return parse_db(r, url->path + 1);
}

static int parse_tls(struct redis *r, struct hf__url *url)
{
    struct net_tls_files files = {.cacert = r->core->option(url, "cacert"),
                                  .cert = r->core->option(url, "cert"),
                                  .key = r->core->option(url, "key")};
    int rc;

    if (strcmp(url->scheme, "rediss") != 0)
        return !files.cacert && !files.cert && !files.key
                   ? 0
                   : r->core->why(r->client, HF_EINVAL,
                                  "cacert, cert and key are for TLS; rediss:// "
                                  "would be right");
    rc = hf__tls_new(r->core, r->client, &files, &r->cmd.link.stream.tls);
    r->sub.link.stream.tls = r->ear.link.stream.tls = r->cmd.link.stream.tls;
    return rc;
}

static int parse(struct redis *r, const struct hf__config *config)
{
    struct hf__url *url = config->url;
    const char *db = r->core->option(url, "db");
    int rc = parse_dialect(r, config);

    if (!rc)
        rc = parse_keep(r, config);
    if (!rc && strcmp(url->scheme, "redis+unix") == 0)
        rc = parse_unix(r, url);
    else if (!rc)
        rc = parse_host(r, url);
    if (!rc)
        rc = parse_tls(r, url);
    if (!rc && db)
        rc = parse_db(r, db);
    if (rc)
        return rc;
    r->op_timeout_ms = config->op_timeout_ms;
    r->user = copy(r, url->user);
    r->password = copy(r, config->password);
    return r->user && r->password ? 0 : HF_ENOMEM;
}

/* Who we are: to the server a random uuid, to people host and pid. The scripts
 * have to know how long our prefix is, which every name of ours begins with, to
 * find our channel; it is in there so that an ACL can tell tenants apart. */
static int introduce(struct redis *r, const struct hf__config *config)
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

/* With TLS a part is left of what hf_open() has: a server without TLS may wait
 * for more, and our text says so, where that of hf_open() would not. Pauses are
 * short beside op_timeout, so that a server that is back before that finds us
 * there. */
static void set_link(struct redis *r, struct rd_pipe *p, uint32_t connect_ms,
                     uint32_t silence_ms, const char *lost)
{
    struct net_link *l = &p->link;
    uint32_t pause_ms = r->op_timeout_ms / 8;

    l->peer = &r->peer;
    l->tags = &r->tags;
    l->lost = lost;
    l->doubt = l->stream.tls ? "; is it Redis, with TLS?"
                             : "; is it Redis? With TLS it is rediss://";
    l->connect_ms = l->stream.tls ? connect_ms - connect_ms / 8 : connect_ms;
    l->silence_ms = silence_ms;
    l->pause_ms = pause_ms < BACKOFF_MAX_MS ? pause_ms : BACKOFF_MAX_MS;
    p->user = r->user;
    p->password = r->password;
}

static int start(struct redis *r, const struct hf__config *config)
{
    int rc = r->peer.hosts ? hf__net_find(&r->peer) : 0;

    set_link(r, &r->cmd, config->open_timeout_ms, 2 * r->op_timeout_ms,
             "redis: lost the connection");
    set_link(r, &r->sub, config->connect_timeout_ms, r->op_timeout_ms,
             "redis: lost the connection for messages");
    set_link(r, &r->ear, config->connect_timeout_ms, r->op_timeout_ms,
             "redis: lost the connection for changes");
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
    hf__rd_pipe_init(&r->ear, core, client, &hf__rd_ear, r,
                     sizeof(struct rd_sent));
    rc = parse(r, config);
    if (!rc)
        rc = introduce(r, config);
    if (!rc)
        rc = start(r, config);
    if (rc) {
        free_all(r);
        return rc;
    }
    *self = r;
    return 0;
}

static int redis_opened(void *self)
{
    return hf__link_opened(&((struct redis *)self)->cmd.link);
}

static void redis_close(void *self)
{
    free_all(self);
}

/* ---- driving ----------------------------------------------------------- */

static void redis_ready(void *self, uint32_t tag, uint32_t events, hf__time now)
{
    struct redis *r = self;

    if (!hf__link_ready(&r->cmd.link, tag, events, now) &&
        !hf__link_ready(&r->sub.link, tag, events, now))
        hf__link_ready(&r->ear.link, tag, events, now);
}

static void redis_advance(void *self, hf__time now)
{
    struct redis *r = self;

    hf__link_advance(&r->cmd.link, now);
    hf__rd_sub_move(r, now);
    hf__rd_ear_move(r, now);
    hf__rd_late_move(r, now);
    hf__rd_pump(r);
}

static hf__time redis_next_timeout(void *self)
{
    struct redis *r = self;
    hf__time at =
        hf__min_time(hf__link_timeout(&r->cmd.link), hf__rd_sub_timeout(r));

    at = hf__min_time(at, hf__rd_ear_timeout(r));
    return r->late ? hf__min_time(at, hf__rd_late_timeout(r)) : at;
}

static const struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "redis",
    .caps = {[HF_MUTEX] = HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE |
                          HF_CAP_EVENTS | HF_CAP_INSPECT,
             [HF_RWLOCK] = HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE |
                           HF_CAP_EVENTS | HF_CAP_INSPECT,
             [HF_SEMAPHORE] = HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE |
                              HF_CAP_EVENTS | HF_CAP_INSPECT,
             [HF_LATCH] = HF_CAP_UNFAIR | HF_CAP_EVENTS | HF_CAP_INSPECT},
    .fair_by_default = false,
    .options = "dialect, db, keep_tokens, cacert, cert, key",
    .taken = "its key was deleted or evicted, it was broken (hf_break), "
             "or the server lost its data",
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

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    (void)scheme; /* one table for all */
    return abi == HF__ABI ? &backend : NULL;
}
