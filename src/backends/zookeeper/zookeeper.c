/*
 * The backend's table of functions; opening and closing a client.
 *
 *   zk://host[:2181][,host...][/path]
 *   dialect=curator (default: Curator's recipes)
 *   dialect=kazoo   (kazoo's names; no semaphore)
 *   tick=2s         (the servers' tickTime; needed only if their
 *                   minSessionTimeout is below two ticks)
 */
#include "zookeeper.h"

#include "backends/common/table.h"
#include "call.h"
#include "changes.h"
#include "cleanup.h"
#include "diagnose.h"
#include "inspect.h"
#include "latch.h"
#include "list.h"
#include "lock.h"
#include "notify.h"
#include "path.h"
#include "put.h"
#include "query.h"
#include "queue.h"
#include "renew.h"
#include "semaphore.h"
#include "session.h"
#include "socket.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

#define PORT 2181
#define TICK_MAX_MS 3600000

static void zk_free_all(struct zk *z)
{
    hf__table_fini(&z->watches);
    hf__zk_nodes_fini(z);
    hf__zk_renew_fini(z);
    hf__zk_queries_fini(z);
    hf__zk_notify_fini(z);
    hf__zk_calls_fini(z);
    if (z->secret)
        explicit_bzero(z->secret, strlen(z->secret));
    z->core->free(z->client, z->secret);
    z->core->free(z->client, z->hosts);
    z->core->free(z->client, z->root);
    z->core->free(z->client, z);
}

static int zk_parse_dialect(struct zk *z, const struct hf__config *config)
{
    const char *dialect = z->core->option(config->url, "dialect");

    z->kazoo = dialect && strcmp(dialect, "kazoo") == 0;
    if (z->kazoo) /* kazoo would not count our leases */
        config->caps[HF_SEMAPHORE] = 0;
    if (!dialect || z->kazoo || strcmp(dialect, "curator") == 0)
        return 0;
    return z->core->why(z->client, HF_EINVAL,
                        "dialect=%.40s: it must be curator or kazoo", dialect);
}

static int zk_parse_tick(struct zk *z, const struct hf__config *config)
{
    const char *tick = z->core->option(config->url, "tick");
    int64_t ms = 0;

    if (tick && (z->core->parse_ms(tick, &ms) || ms < 1 || ms > TICK_MAX_MS))
        return z->core->why(z->client, HF_EINVAL,
                            "tick=%.40s; it must be the servers' tickTime, a "
                            "time such as 2s, from 1ms to 1h",
                            tick);
    z->tick_ms = (uint32_t)ms;
    return 0;
}

/* Puts the hosts in random order, to spread clients over the servers. (The
 * library could do it, but it would seed random(3), which belongs to the
 * program.) */
static int zk_shuffle(struct zk *z, uint8_t order[], size_t len)
{
    uint8_t chance[16] = {0};
    int rc = z->core->random(chance, sizeof(chance));

    for (size_t i = 0; i < len; i++) {
        size_t other = chance[i] % (i + 1);

        order[i] = order[other];
        order[other] = (uint8_t)i;
    }
    return rc ? z->core->lasts(z->client, rc, "getrandom failed") : 0;
}

static int zk_parse_hosts(struct zk *z, const struct hf__url *url)
{
    uint8_t order[16] = {0};
    size_t size = 1, len = 0;

    if (!url->hosts_len || !url->hosts[0].name[0])
        return z->core->why(z->client, HF_EINVAL,
                            "there is no host; it must be "
                            "zk://host1:2181,host2:2181/path");
    for (size_t i = 0; i < url->hosts_len; i++)
        size += strlen(url->hosts[i].name) + sizeof(":65535,");
    z->hosts = z->core->alloc(z->client, size);
    if (!z->hosts)
        return HF_ENOMEM;
    if (zk_shuffle(z, order, url->hosts_len) != 0)
        return HF_EBACKEND;
    for (size_t i = 0; i < url->hosts_len; i++) {
        const struct hf__host *h = &url->hosts[order[i]];

        /* The library takes what follows the last colon as the port, and allows
         * no brackets. */
        len +=
            (size_t)snprintf(z->hosts + len, size - len, "%s%s:%d",
                             i ? "," : "", h->name, h->port ? h->port : PORT);
    }
    return 0;
}

/* Returns true for a path that the server accepts unchanged. */
static bool zk_is_path(const char *path)
{
    while (*path == '/') {
        size_t len = strcspn(++path, "/");

        if (!len || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        for (; len; len--, path++)
            if ((unsigned char)*path < 0x20 || *path == 0x7f)
                return false;
    }
    return *path == '\0';
}

static int zk_parse_root(struct zk *z, const struct hf__url *url)
{
    static const char own[] = "/zookeeper";
    size_t len = strlen(url->path);

    while (len && url->path[len - 1] == '/')
        len--;
    z->root = z->core->alloc(z->client, len + 1);
    if (!z->root)
        return HF_ENOMEM;
    memcpy(z->root, url->path, len);
    if (strncmp(z->root, own, strlen(own)) == 0 &&
        (z->root[strlen(own)] == '/' || !z->root[strlen(own)]))
        return z->core->why(
            z->client, HF_EINVAL,
            "the path %s is ZooKeeper's own; it must be another "
            "one, as in zk://host/locks",
            own);
    if (len < ZK_ROOT_MAX && zk_is_path(z->root))
        return 0;
    return z->core->why(z->client, HF_EINVAL,
                        "the path after the hosts must be like /a/b");
}

/* Reads user and password. If the URL has a user, only that user has rights on
 * the nodes that the client creates. */
static int zk_parse_secret(struct zk *z, const struct hf__config *config)
{
    const char *user = config->url->user, *password = config->password;
    size_t size = strlen(user) + 1 + strlen(password) + 1;

    z->acl = &ZOO_OPEN_ACL_UNSAFE;
    if (!*user && !*password)
        return 0;
    if (!*password)
        return z->core->why(z->client, HF_EINVAL,
                            "the user needs a password: in HOLDFAST_PASSWORD, "
                            "by password_file=, or in the URL");
    if (!*user || strchr(user, ':'))
        return z->core->why(z->client, HF_EINVAL,
                            "the password needs a user without a colon, as in "
                            "zk://user@host");
    z->secret = z->core->alloc(z->client, size);
    if (!z->secret)
        return HF_ENOMEM;
    snprintf(z->secret, size, "%s:%s", user, password);
    z->acl = &ZOO_CREATOR_ALL_ACL;
    return 0;
}

static int zk_parse(struct zk *z, const struct hf__config *config)
{
    int rc = zk_parse_dialect(z, config);

    if (!rc)
        rc = zk_parse_tick(z, config);
    if (!rc)
        rc = zk_parse_hosts(z, config->url);
    if (!rc)
        rc = zk_parse_root(z, config->url);
    if (!rc)
        rc = zk_parse_secret(z, config);
    z->ttl_ms = config->ttl_ms;
    z->open_timeout_ms = config->open_timeout_ms;
    z->listens = config->listens;
    return rc;
}

static int zk_open(hf_client *client, const struct hf__core *core,
                   const struct hf__config *config, void **self)
{
    struct zk *z = core->alloc(client, sizeof(*z));
    int rc;

    if (!z)
        return HF_ENOMEM;
    z->core = z->watches.core = core;
    z->client = z->watches.client = client;
    z->fd = z->own_fd = -1;
    z->pass_at = HF__NEVER;
    rc = zk_parse(z, config);
    hf__about(z->about, sizeof(z->about), "");
    if (!rc)
        rc = hf__zk_session_open(z);
    if (rc) {
        hf__zk_session_close(z);
        zk_free_all(z);
        return rc;
    }
    *self = z;
    return 0;
}

static int zk_opened(void *self)
{
    struct zk *z = self;
    char why[200];

    if (z->opened)
        return HF__DONE;
    if (!z->open_code)
        return HF__PENDING;
    return z->core->why(z->client, z->open_code, "%s",
                        hf__zk_why_down(z, why, sizeof(why)));
}

static void zk_close(void *self)
{
    hf__zk_session_close(self);
    zk_free_all(self);
}

static void zk_ready(void *self, uint32_t tag, uint32_t events, hf__time now)
{
    (void)now; /* advance() is called next */
    hf__zk_socket_ready(self, tag, events);
}

static zk_attempt_fn *const attempts[] = {[HF_MUTEX] = hf__zk_queue_attempt,
                                          [HF_RWLOCK] = hf__zk_queue_attempt,
                                          [HF_SEMAPHORE] =
                                              hf__zk_semaphore_attempt,
                                          [HF_LATCH] = hf__zk_latch_attempt};

static int zk_attempt(void *self, struct hf__req *req)
{
    return hf__zk_lock_attempt(self, req, attempts[req->remote->kind]);
}

static int (*const queries[])(struct zk *, struct hf__query *) = {
    [HF__INSPECT] = hf__zk_inspect_query,
    [HF__LIST] = hf__zk_list_query,
    [HF__BREAK] = hf__zk_break_query,
    [HF__ASK] = hf__zk_ask_query,
    [HF__PUT] = hf__zk_put_query,
    [HF__DOWNGRADE] = hf__zk_downgrade_query,
    [HF__DIAGNOSE] = hf__zk_diagnose_query,
    [HF__LISTEN] = hf__zk_changes_listen,
    [HF__LATCH_SET] = hf__zk_latch_query,
    [HF__LATCH_DOWN] = hf__zk_latch_query,
    [HF__LATCH_GET] = hf__zk_latch_query,
};

static int zk_query(void *self, struct hf__query *q)
{
    struct zk *z = self;

    if (!z->up && q->req.op != HF__PUT && q->req.op != HF__DOWNGRADE)
        return HF__LATER;
    return queries[q->req.op](z, q);
}

#define CAPS                                                                   \
    (HF_CAP_LEASE | HF_CAP_EVENTS | HF_CAP_DURABLE | HF_CAP_INSPECT |          \
     HF_CAP_WANTED | HF_CAP_PUT)

static const struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "zookeeper",
    .flags = HF__SESSION,
    .caps = {[HF_MUTEX] = CAPS | HF_CAP_FAIR | HF_CAP_UNFAIR,
             [HF_RWLOCK] = CAPS | HF_CAP_FAIR,
             [HF_SEMAPHORE] = CAPS | HF_CAP_FAIR,
             [HF_LATCH] = HF_CAP_EVENTS | HF_CAP_DURABLE | HF_CAP_INSPECT},
    .fair_by_default = true,
    .options = "dialect, tick",
    .taken = "it is no longer on the server (broken, or its node was deleted)",
    .open = zk_open,
    .opened = zk_opened,
    .ready = zk_ready,
    .close = zk_close,
    .advance = hf__zk_session_move,
    .next_timeout = hf__zk_session_timeout,
    .attach = hf__zk_lock_attach,
    .detach = hf__zk_lock_detach,
    .attempt = zk_attempt,
    .release = hf__zk_lock_release,
    .abandon = hf__zk_lock_abandon,
    .renew = hf__zk_renew,
    .query = zk_query,
    .unlisten = hf__zk_changes_unlisten,
};

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    (void)scheme; /* the module serves only one scheme */
    return abi == HF__ABI ? &backend : NULL;
}
