/*
 * The backend's table, and how a client is opened and closed.
 *
 *   mysql://[user[:password]@]host[:3306][,host2...]/database
 *   mariadb://...           the same
 *   socket=/path            a Unix socket instead of a host
 *   tls=yes                 TLS, with cacert=FILE&cert=FILE&key=FILE
 *   wait=queue              waiting clients sleep at the server (default)
 *   wait=poll               waiting clients attempt repeatedly, as they do in a
 *                           Galera cluster or behind a proxy that shares
 *                           connections
 *   wait_connections=16     how many more connections may be opened, on which
 *                           locks wait; a lock that finds none free polls
 */
#include "mysql.h"

#include "cmd.h"
#include "lock.h"
#include "net/tls.h"
#include "outcome.h"
#include "query.h"
#include "renew.h"
#include "session.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 3306
#define WAITS 16
#define WAITS_MAX 1000
/* The minimum of the idle timeout of cmd. If the client has been silent for the
 * idle timeout, the server closes cmd. This frees the bells of a client that is
 * stopped or cut off. */
#define IDLE_MIN_S 60

static void mysql_free_all(struct mysql *m)
{
    hf__my_waits_fini(m);
    hf__my_conn_fini(&m->cmd);
    if (m->login.password)
        explicit_bzero(m->login.password, strlen(m->login.password));
    m->core->free(m->client, m->login.password);
    m->core->free(m->client, m->login.user);
    m->core->free(m->client, m->login.database);
    hf__tls_free(m->login.tls);
    hf__net_endpoint_fini(&m->peer);
    m->core->free(m->client, m);
}

/* ---- open --------------------------------------------------------------- */

static int mysql_parse_yes(struct mysql *m, struct hf__url *url,
                           const char *key, const char *yes, const char *no,
                           bool *is)
{
    const char *text = m->core->option(url, key);

    *is = text && strcmp(text, yes) == 0;
    return !text || *is || strcmp(text, no) == 0
               ? 0
               : m->core->why(m->client, HF_EINVAL,
                              "%s=%.40s: must be %s or %s", key, text, yes, no);
}

static int mysql_parse_tls(struct mysql *m, struct hf__url *url)
{
    struct net_tls_files files = {.cacert = m->core->option(url, "cacert"),
                                  .cert = m->core->option(url, "cert"),
                                  .key = m->core->option(url, "key")};
    bool has_tls;
    int rc = mysql_parse_yes(m, url, "tls", "yes", "no", &has_tls);

    if (rc)
        return rc;
    if (has_tls && m->core->option(url, "socket"))
        return m->core->why(m->client, HF_EINVAL,
                            "tls=yes and socket=: a socket has no host name "
                            "to be verified; it must be one of them");
    if (has_tls)
        return hf__tls_new(m->core, m->client, &files, &m->login.tls);
    return !files.cacert && !files.cert && !files.key
               ? 0
               : m->core->why(m->client, HF_EINVAL,
                              "cacert, cert and key are for TLS: use tls=yes");
}

static int mysql_parse_waits(struct mysql *m, const struct hf__config *config)
{
    const char *text = m->core->option(config->url, "wait_connections");
    const char *fair = m->core->option(config->url, "fair");
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : WAITS;
    int rc =
        mysql_parse_yes(m, config->url, "wait", "poll", "queue", &m->must_poll);

    if (rc)
        return rc;
    if (text && (*text < '0' || *text > '9' || *end || n > WAITS_MAX))
        return m->core->why(m->client, HF_EINVAL,
                            "wait_connections=%.40s: must be a number from 0 "
                            "to %d",
                            text, WAITS_MAX);
    m->waits_most = (uint32_t)n;
    m->must_poll = m->must_poll || !n;
    if (!m->must_poll)
        return 0;
    m->polls = MY_MUST_POLL;
    if (fair && strcmp(fair, "yes") == 0)
        return m->core->why(m->client, HF_EINVAL,
                            "fair=yes: with wait=poll or wait_connections=0 "
                            "there is no queue; wait=queue has fair locks");
    for (int kind = HF_MUTEX; kind <= HF_LATCH; kind++)
        config->caps[kind] &= ~(HF_CAP_FAIR | HF_CAP_EVENTS);
    return 0;
}

static int mysql_parse_server(struct mysql *m, struct hf__url *url)
{
    const char *path = m->core->option(url, "socket");
    bool has_host = url->hosts_len && url->hosts[0].name[0];

    if (path && has_host &&
        (url->hosts_len > 1 || url->hosts[0].port ||
         strcmp(url->hosts[0].name, "localhost") != 0))
        return m->core->why(m->client, HF_EINVAL,
                            "the URL has a host and socket=; it must have one "
                            "of them");
    if (path && path[0] != '/')
        return m->core->why(m->client, HF_EINVAL,
                            "socket=%.40s: must be the path of the server's "
                            "socket",
                            path);
    if (path && hf__net_set_path(&m->peer, path))
        return m->core->why(m->client, HF_EINVAL,
                            "socket=: the path has %zu bytes; it must have at "
                            "most 107",
                            strlen(path));
    if (path)
        return 0;
    if (!has_host)
        return m->core->why(m->client, HF_EINVAL,
                            "the URL must have a host: "
                            "mysql://user@host/database");
    return hf__net_set_hosts(&m->peer, url->hosts, url->hosts_len, PORT);
}

static char *mysql_copy(struct mysql *m, const char *text)
{
    size_t size = strlen(text) + 1;
    char *p = m->core->alloc(m->client, size);

    return p ? memcpy(p, text, size) : NULL;
}

static int mysql_parse_login(struct mysql *m, const struct hf__config *config)
{
    const struct hf__url *url = config->url;
    const char *database = url->path[0] ? url->path + 1 : "";

    if (!url->user[0])
        return m->core->why(m->client, HF_EINVAL,
                            "the URL must have a user: "
                            "mysql://user@host/database");
    if (!database[0] || strchr(database, '/') || strlen(database) > 64)
        return m->core->why(m->client, HF_EINVAL,
                            "the URL must have one database, of at most 64 "
                            "bytes: mysql://user@host/database");
    m->login.user = mysql_copy(m, url->user);
    m->login.password = mysql_copy(m, config->password);
    m->login.database = mysql_copy(m, database);
    return m->login.user && m->login.password && m->login.database ? 0
                                                                   : HF_ENOMEM;
}

static int mysql_parse(struct mysql *m, const struct hf__config *config)
{
    int rc = mysql_parse_server(m, config->url);

    if (!rc)
        rc = mysql_parse_login(m, config);
    if (!rc)
        rc = mysql_parse_tls(m, config->url);
    if (!rc)
        rc = mysql_parse_waits(m, config);
    m->op_timeout_ms = config->op_timeout_ms;
    m->listens = config->listens;
    m->idle_s = 3 * (config->ttl_ms / 1000 + 1);
    m->idle_s = m->idle_s > IDLE_MIN_S ? m->idle_s : IDLE_MIN_S;
    return rc;
}

static int mysql_introduce(struct mysql *m)
{
    uint8_t b[MY_OWNER_LEN + 8];
    int rc = m->core->random(b, sizeof(b));

    if (rc)
        return m->core->lasts(m->client, rc, "getrandom failed");
    memcpy(m->owner, b, MY_OWNER_LEN);
    memcpy(&m->chance, b + MY_OWNER_LEN, 8);
    m->chance |= 1;
    gethostname(m->host, sizeof(m->host) - 1);
    m->pid = (uint64_t)getpid();
    return 0;
}

static int mysql_start(struct mysql *m, const struct hf__config *config)
{
    int rc = m->peer.hosts ? hf__net_find(&m->peer) : 0;

    m->connect_ms = config->connect_timeout_ms;
    hf__my_aim(m, &m->cmd, &m->peer, config->open_timeout_ms);
    m->cmd.link.lost = "mysql: lost the connection";
    if (!rc)
        hf__link_start(&m->cmd.link, m->core->now());
    return rc;
}

static const struct my_op ops[] = {
    [MY_VERB] = {.encode = hf__my_verb_encode, .answer = hf__my_verb_answer},
    [MY_RENEW] = {.encode = hf__my_renew_encode,
                  .answer = hf__my_renew_answer,
                  .failed = hf__my_renew_failed},
    [MY_QUERY] = {.encode = hf__my_query_encode, .answer = hf__my_query_answer},
};

static int mysql_open(hf_client *client, const struct hf__core *core,
                      const struct hf__config *config, void **self)
{
    struct mysql *m = core->alloc(client, sizeof(*m));
    int rc;

    if (!m)
        return HF_ENOMEM;
    m->core = m->peer.core = m->here.core = core;
    m->ops = ops;
    m->client = m->peer.client = m->here.client = client;
    hf__my_conn_init(&m->cmd, core, client, &hf__my_cmd, m,
                     sizeof(struct my_flight));
    rc = mysql_parse(m, config);
    if (!rc)
        rc = mysql_introduce(m);
    if (!rc)
        rc = mysql_start(m, config);
    if (rc) {
        mysql_free_all(m);
        return rc;
    }
    *self = m;
    return 0;
}

static int mysql_opened(void *self)
{
    return hf__link_opened(&((struct mysql *)self)->cmd.link);
}

static void mysql_close(void *self)
{
    mysql_free_all(self);
}

/* ---- driving ------------------------------------------------------------ */

static void mysql_ready(void *self, uint32_t tag, uint32_t events, hf__time now)
{
    struct mysql *m = self;

    if (!hf__link_ready(&m->cmd.link, tag, events, now))
        hf__my_waits_ready(m, tag, events, now);
}

static void mysql_advance(void *self, hf__time now)
{
    struct mysql *m = self;

    hf__link_advance(&m->cmd.link, now);
    hf__my_ping(m, now);
    hf__my_naps_advance(m, now);
    hf__my_waits_advance(m, now);
    hf__my_pump(m);
}

static hf__time mysql_next_timeout(void *self)
{
    struct mysql *m = self;
    hf__time at =
        hf__min_time(hf__link_timeout(&m->cmd.link), hf__my_ping_at(m));

    at = hf__min_time(at, hf__my_naps_timeout(m));
    return hf__min_time(at, hf__my_waits_timeout(m));
}

/* HF_CAP_EVENTS promises that every release wakes the first waiter. Only the
 * mutex has this capability, because to release the bell a client needs no
 * special right. For the other kinds, the client that releases wakes the waiter
 * by KILL QUERY. The server refuses this KILL if the waiter has logged in as a
 * different user, unless the client has the right to end statements of other
 * users. (Behind a proxy that shares connections, a client wakes no waiter of
 * any kind; docs/guarantees/mysql.md says so.) */
#define SHARED                                                                 \
    (HF_CAP_FAIR | HF_CAP_UNFAIR | HF_CAP_LEASE | HF_CAP_DURABLE |             \
     HF_CAP_INSPECT | HF_CAP_WANTED | HF_CAP_PUT)

static const struct hf__backend backend = {
    .abi = HF__ABI,
    .name = "mysql",
    .caps = {[HF_MUTEX] = SHARED | HF_CAP_EVENTS,
             [HF_RWLOCK] = SHARED,
             [HF_SEMAPHORE] = SHARED,
             [HF_LATCH] = HF_CAP_UNFAIR | HF_CAP_DURABLE | HF_CAP_INSPECT},
    .fair_by_default = true,
    .options = "socket, tls, cacert, cert, key, wait, wait_connections",
    .taken = "it is no longer on the server (broken, its row was changed or "
             "deleted, the server's clock jumped, or the server lost its data)",
    .open = mysql_open,
    .opened = mysql_opened,
    .close = mysql_close,
    .ready = mysql_ready,
    .advance = mysql_advance,
    .next_timeout = mysql_next_timeout,
    .attach = hf__my_attach,
    .detach = hf__my_detach,
    .attempt = hf__my_attempt,
    .release = hf__my_release,
    .abandon = hf__my_abandon,
    .renew = hf__my_renew,
    .query = hf__my_query,
};

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    (void)scheme;
    return abi == HF__ABI ? &backend : NULL;
}
