/*
 * The backend's table of functions; opening and closing a client.
 *
 *   etcd://[user[:password]@]host[:2379][,host...][/path]
 *   etcds://...[?cacert=FILE&cert=FILE&key=FILE]   the same with TLS
 *
 * A path a/b puts "a/b/" before every name.
 */
#include "etcd.h"

#include "backends/common/about.h"
#include "net/tls.h"

#include "answer.h"
#include "changes.h"
#include "diagnose.h"
#include "entry.h"
#include "entry_request.h"
#include "inspect.h"
#include "latch.h"
#include "list.h"
#include "lock.h"
#include "put.h"
#include "query.h"
#include "renew.h"
#include "session.h"
#include "slot.h"

#include <stdio.h>
#include <string.h>

#define PORT 2379
#define BACKOFF_MAX_MS 1000
#define ELSEWHERE_MS 2000

static char *etcd_copy(struct etcd *e, const char *text, const char *end)
{
    size_t len = strlen(text), more = strlen(end);
    char *p = e->core->alloc(e->client, len + more + 1);

    if (p) {
        memcpy(p, text, len);
        memcpy(p + len, end, more + 1);
    }
    return p;
}

/* Allocates memory for an answer that is being read, usually from etcd.room.
 * There is a limit, because two bytes of an answer may take up a hundred in
 * memory. */
static void *etcd_take(void *self, size_t size)
{
    struct etcd *e = self;
    struct et_room *r = &e->room;
    size_t some = (size + sizeof(r->data[0]) - 1) / sizeof(r->data[0]);
    void *p = r->data + r->used;

    if (size > ET_MEMORY - r->bytes)
        return NULL; /* no valid answer of etcd needs that much */
    if (some > ET_ROOM - r->used) {
        p = e->core->alloc(e->client, size);
        e->is_short = e->is_short || !p;
    } else {
        r->used += some;
    }
    if (!p)
        return NULL;
    r->bytes += size;
    r->parts++;
    return p;
}

static void etcd_give(void *self, void *p)
{
    struct etcd *e = self;
    struct et_room *r = &e->room;

    if (!p)
        return;
    if ((uintptr_t)p - (uintptr_t)r->data >= sizeof(r->data))
        e->core->free(e->client, p);
    if (!--r->parts)
        r->used = r->bytes = 0;
}

static void etcd_free_all(struct etcd *e)
{
    hf__et_requests_fini(e);
    hf__et_queries_fini(e);
    hf__et_changes_fini(e);
    hf__et_session_fini(e);
    hf__net_endpoint_fini(&e->peer);
    if (e->password)
        explicit_bzero(e->password, strlen(e->password));
    e->core->free(e->client, e->password);
    e->core->free(e->client, e->user);
    e->core->free(e->client, e->ask_key);
    e->core->free(e->client, e->root);
    e->core->free(e->client, e);
}

/* ---- open ---------------------------------------------------------------- */

static int etcd_parse_hosts(struct etcd *e, const struct hf__url *url)
{
    if (!url->hosts_len || !url->hosts[0].name[0])
        return e->core->why(e->client, HF_EINVAL,
                            "there is no host; it must be "
                            "etcd://host1:2379,host2:2379/path");
    return hf__net_set_hosts(&e->peer, url->hosts, url->hosts_len, PORT);
}

static int etcd_parse_root(struct etcd *e, const struct hf__url *url)
{
    const char *path = url->path;
    size_t len;

    while (*path == '/')
        path++;
    e->root = etcd_copy(e, path, *path ? "/" : "");
    if (!e->root)
        return HF_ENOMEM;
    len = strlen(e->root);
    while (len > 1 && e->root[len - 2] == '/')
        e->root[--len] = '\0';
    if (hf__et_is_reserved(e->root, len))
        return e->core->why(e->client, HF_EINVAL,
                            "a part of the path begins with \"" ET_OURS
                            "\", which is reserved for holdfast's keys");
    if (len > 200)
        return e->core->why(
            e->client, HF_EINVAL,
            "the path has %zu bytes; it must have less than 200", len - 1);
    e->ask_key = etcd_copy(e, e->root, ET_OURS "ask");
    return e->ask_key ? 0 : HF_ENOMEM;
}

static int etcd_parse_user(struct etcd *e, const struct hf__config *config)
{
    e->user = etcd_copy(e, config->url->user, "");
    e->password = etcd_copy(e, config->password, "");
    if (!e->user || !e->password)
        return HF_ENOMEM;
    if (!e->user[0] == !e->password[0])
        return 0;
    return e->core->why(e->client, HF_EINVAL,
                        e->user[0]
                            ? "the user needs a password: in "
                              "HOLDFAST_PASSWORD, by password_file=, or in "
                              "the URL"
                            : "the password needs a user, as in "
                              "etcd://user@host");
}

static int etcd_parse_tls(struct etcd *e, struct hf__url *url)
{
    struct net_tls_files files = {.cacert = e->core->option(url, "cacert"),
                                  .cert = e->core->option(url, "cert"),
                                  .key = e->core->option(url, "key"),
                                  .alpn = "h2"};

    if (strcmp(url->scheme, "etcds") == 0)
        return hf__tls_new(e->core, e->client, &files, &e->g.link.stream.tls);
    if (!files.cacert && !files.cert && !files.key)
        return 0;
    return e->core->why(e->client, HF_EINVAL,
                        "cacert, cert and key are for TLS; the URL must begin "
                        "with etcds://");
}

static int etcd_parse(struct etcd *e, const struct hf__config *config)
{
    int rc = etcd_parse_hosts(e, config->url);

    if (!rc)
        rc = etcd_parse_root(e, config->url);
    if (!rc)
        rc = etcd_parse_user(e, config);
    return rc ? rc : etcd_parse_tls(e, config->url);
}

/* Returns how long the client waits for the answer to a PING. If there are
 * other members, the time is shorter, so that the client soon leaves a dead
 * member, from which its waiters receive no events. */
static uint32_t etcd_silence_of(const struct etcd *e,
                                const struct hf__config *config)
{
    uint32_t ms = config->ttl_ms / 4 < 500 ? 500 : config->ttl_ms / 4,
             most = config->op_timeout_ms;

    if (most > ELSEWHERE_MS && hf__net_has_others(&e->peer))
        most = ELSEWHERE_MS;
    return ms < most ? ms : most;
}

static int start_etcd(struct etcd *e, const struct hf__config *config)
{
    static const struct grpc_header always = {"hasleader", "true"};
    struct net_link *l = &e->g.link;
    uint32_t pause_ms = config->op_timeout_ms / 8;
    int rc = hf__net_find(&e->peer);

    if (rc)
        return rc;
    l->peer = &e->peer;
    l->tags = &e->tags;
    l->lost = "etcd: lost the connection";
    l->doubt = l->stream.tls ? "; is it etcd, with TLS?"
                             : "; is it etcd? With TLS it is etcds://";
    /* If a member stays silent, the link tries the next one. */
    l->goes_round = true;
    l->connect_ms = config->open_timeout_ms;
    l->silence_ms = etcd_silence_of(e, config);
    l->pause_ms = pause_ms < BACKOFF_MAX_MS ? pause_ms : BACKOFF_MAX_MS;
    e->g.headers = &always;
    e->g.headers_len = 1;
    e->g.token_name = "token";
    e->g.ping_ms = 10000;
    e->ttl_s = (config->ttl_ms + 999) / 1000;
    e->listens = config->listens;
    hf__link_start(l, e->core->now());
    return 0;
}

static int etcd_open(hf_client *client, const struct hf__core *core,
                     const struct hf__config *config, void **self)
{
    struct etcd *e = core->alloc(client, sizeof(*e));
    int rc;

    if (!e)
        return HF_ENOMEM;
    e->core = e->peer.core = e->watches.core = core;
    e->client = e->peer.client = e->watches.client = client;
    e->memory = (ProtobufCAllocator){etcd_take, etcd_give, e};
    e->answered = hf__et_answered;
    hf__about(e->about, sizeof(e->about), "");
    rc = hf__et_session_init(e);
    if (!rc)
        rc = etcd_parse(e, config);
    if (!rc)
        rc = start_etcd(e, config);
    if (rc) {
        etcd_free_all(e);
        return rc;
    }
    *self = e;
    return 0;
}

static int etcd_opened(void *self)
{
    return hf__link_opened(&((struct etcd *)self)->g.link);
}

static void etcd_close(void *self)
{
    struct etcd *e = self;

    e->is_closing = true;
    hf__et_requests_fini(e);
    hf__et_queries_fini(e);
    hf__et_session_close(e);
    etcd_free_all(e);
}

/* ---- driving ------------------------------------------------------------- */

static void etcd_ready(void *self, uint32_t tag, uint32_t events, hf__time now)
{
    hf__grpc_ready(&((struct etcd *)self)->g, tag, events, now);
}

static void etcd_advance(void *self, hf__time now)
{
    struct etcd *e = self;

    hf__et_session_move(e, now);
    if (e->put_off && e->g.link.state == NET_UP &&
        e->g.leaves_at == HF__NEVER && !e->g.failed) {
        e->put_off = false;
        e->core->go_on(e->client);
    }
}

static hf__time etcd_next_timeout(void *self)
{
    return hf__et_timeout(self);
}

/* ---- queries about a name ------------------------------------------------ */

static int etcd_query(void *self, struct hf__query *q)
{
    struct etcd *e = self;

    /* HF__DOWNGRADE and HF__PUT use q->line, which is valid only during this
     * call. So they are never parked: without a connection they end at once. */
    if (q->req.op == HF__DOWNGRADE)
        return hf__et_downgrade(e, q);
    if (q->req.op == HF__PUT)
        return hf__et_put_value(e, q);
    if (hf__et_is_down(e))
        return HF__LATER;
    switch (q->req.op) {
    case HF__INSPECT:
    case HF__BREAK:
    case HF__ASK:
        return hf__et_inspect(e, q);
    case HF__LIST:
        return hf__et_list(e, q);
    case HF__DIAGNOSE:
        return hf__et_diagnose(e, q);
    case HF__LISTEN:
        return hf__et_listen(e, q);
    case HF__LATCH_SET:
    case HF__LATCH_DOWN:
    case HF__LATCH_GET:
        return hf__et_latch(e, q);
    default:
        return HF_ENOTSUP;
    }
}

#define CAPS                                                                   \
    (HF_CAP_FAIR | HF_CAP_LEASE | HF_CAP_EVENTS | HF_CAP_DURABLE |             \
     HF_CAP_INSPECT | HF_CAP_WANTED | HF_CAP_PUT)

static const struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "etcd",
    .flags = HF__SESSION,
    .caps = {[HF_MUTEX] = CAPS | HF_CAP_UNFAIR,
             [HF_RWLOCK] = CAPS,
             [HF_SEMAPHORE] = CAPS,
             [HF_LATCH] = HF_CAP_EVENTS | HF_CAP_DURABLE | HF_CAP_INSPECT},
    .fair_by_default = true,
    .options = "cacert, cert, key",
    .taken = "it is no longer on the server (broken, or its key was deleted)",
    .open = etcd_open,
    .opened = etcd_opened,
    .close = etcd_close,
    .ready = etcd_ready,
    .advance = etcd_advance,
    .next_timeout = etcd_next_timeout,
    .attach = hf__et_attach,
    .detach = hf__et_detach,
    .attempt = hf__et_attempt,
    .release = hf__et_release,
    .abandon = hf__et_abandon,
    .renew = hf__et_renew,
    .query = etcd_query,
    .unlisten = hf__et_unlisten,
};

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    (void)scheme; /* both schemes use this table */
    return abi == HF__ABI ? &backend : NULL;
}
