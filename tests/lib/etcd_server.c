#include "etcd_server.h"

#include "certs.h"
#include "wait.h"

#include <sys/socket.h>

static void run(void *server)
{
    struct etcd_server *s = server;
    const char *other = s->program ? s->program : getenv("TEST_ETCD");
    const char *tls = s->tls ? "s" : "";
    struct server_args a = {0};

    server_arg(&a, "%s", other ? other : "etcd");
    server_arg(&a, "--name=e%d", s->peer);
    server_arg(&a, "--data-dir=%s/data", s->dir);
    server_arg(&a, "--listen-client-urls=http%s://127.0.0.1:%d", tls, s->port);
    server_arg(&a, "--advertise-client-urls=http%s://127.0.0.1:%d", tls,
               s->port);
    server_arg(&a, "--listen-peer-urls=http://127.0.0.1:%d", s->peer);
    server_arg(&a, "--initial-advertise-peer-urls=http://127.0.0.1:%d",
               s->peer);
    if (s->cluster)
        server_arg(&a, "--initial-cluster=%s", s->cluster);
    else
        server_arg(&a, "--initial-cluster=e%d=http://127.0.0.1:%d", s->peer,
                   s->peer);
    server_arg(&a, "--listen-metrics-urls=http://127.0.0.1:%d", s->look);
    /* etcd derives its shortest lease from the election timeout; 100 ms allow a
     * lease of one second. The timeout of a cluster is longer, so that a stall
     * of the machine does not cause an election. */
    server_arg(&a, "--heartbeat-interval=%d", s->cluster ? 50 : 10);
    server_arg(&a, "--election-timeout=%d", s->cluster ? 500 : 100);
    server_arg(&a, "--bcrypt-cost=4"); /* fast password checks */
    server_arg(&a, "--logger=zap");
    server_arg(&a, "--log-level=error");
    if (s->tls) {
        server_arg(&a, "--cert-file=%s/%s.pem", s->dir, s->tls);
        server_arg(&a, "--key-file=%s/%s.key", s->dir, s->tls);
    }
    if (s->tls && s->asks_certificate) {
        server_arg(&a, "--trusted-ca-file=%s/ca.pem", s->dir);
        server_arg(&a, "--client-cert-auth");
    }
    server_args(&a, s->args, ETCD_SERVER_ARGS);
    setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 1); /* ignored on other machines */
    server_exec(&s->process, &a);
}

/* Returns the reply to a GET of that path at the port for metrics (`look`), or
 * "". */
static const char *says(const struct etcd_server *s, const char *path)
{
    static char buf[256 << 10];
    size_t len = 0;
    ssize_t n = 1;
    int fd = server_connect(s->look);

    if (fd >= 0 && dprintf(fd, "GET %s HTTP/1.0\r\n\r\n", path) > 0)
        while (n > 0 && len < sizeof(buf) - 1) {
            n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0);
            len += n > 0 ? (size_t)n : 0;
        }
    if (fd >= 0)
        close(fd);
    buf[len] = '\0';
    return buf;
}

static bool answers(void *server)
{
    return strstr(says(server, "/health"), "\"health\":\"true\"");
}

double etcd_server_metric(const struct etcd_server *s, const char *name)
{
    const char *at = strstr(says(s, "/metrics"), name);

    return at ? strtod(at + strlen(name), NULL) : -1;
}

static int make(struct etcd_server *s)
{
    static const struct server_kind kind = {
        .name = "etcd",
        .run = run,
        .answers = answers,
    };
    int *port[] = {&s->port, &s->peer, &s->look};

    s->kind = &kind;
    if (server_dir(&s->process, "holdfast-etcd", false))
        return -1;
    for (int i = 0; i < 3; i++)
        if (server_port(&s->process, port[i]))
            return -1;
    snprintf(s->url, sizeof(s->url), "etcd://127.0.0.1:%d", s->port);
    snprintf(s->tls_url, sizeof(s->tls_url),
             "etcds://127.0.0.1:%d?cacert=%s/ca.pem", s->port, s->dir);
    return s->tls ? certs_make(s->dir) : 0;
}

int etcd_server_start(struct etcd_server *s)
{
    return make(s) || etcd_server_again(s) ? -1 : 0;
}

int etcd_server_empty(struct etcd_server *s)
{
    char data[96];

    etcd_server_kill(s);
    snprintf(data, sizeof(data), "%s/data", s->dir);
    return server_dir_remove(data) || etcd_server_again(s) ? -1 : 0;
}

int etcd_server_ctl(struct etcd_server *s, const char *args, char *out,
                    size_t size)
{
    char command[600], tls[300] = "", rest[256];
    size_t len = 0;
    FILE *f;

    if (s->tls)
        snprintf(tls, sizeof(tls),
                 "--cacert=%s/ca.pem --cert=%s/client.pem --key=%s/client.key",
                 s->dir, s->dir, s->dir);
    snprintf(command, sizeof(command),
             "ETCDCTL_API=3 etcdctl --endpoints=http%s://127.0.0.1:%d %s %s%s "
             "%s 2>&1",
             s->tls ? "s" : "", s->port, tls, s->password ? "--user=root:" : "",
             s->password ? s->password : "", args);
    f = popen(command, "r"); // NOLINT(cert-env33-c)
    if (!f)
        return -1;
    while (out && len < size - 1 && fgets(out + len, (int)(size - len), f))
        len += strlen(out + len);
    if (out)
        out[len] = '\0';
    while (fgets(rest, sizeof(rest), f))
        ;
    return pclose(f);
}

int etcd_server_lock(struct etcd_server *s, const char *password,
                     const char *prefix)
{
    char args[128];
    static const char *const steps[] = {
        "user add root:%s", "role add work", "user add worker:%s",
        "user grant-role worker work", "auth enable"};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        snprintf(args, sizeof(args), steps[i], password);
        if (etcd_server_ctl(s, args, NULL, 0))
            return -1;
    }
    s->password = password;
    snprintf(args, sizeof(args),
             "role grant-permission work --prefix=true readwrite '%s'", prefix);
    return etcd_server_ctl(s, args, NULL, 0) ? -1 : 0;
}

/* Returns whether the key is an entry of a lock or a latch, as opposed to a key
 * of hf_lock_put() or the client's guard. */
static bool is_entry(const char *key)
{
    const char *last = strrchr(key, '/');

    if (!last || strstr(key, "holdfast:client/"))
        return false;
    return strstr(key, "/read/") || strstr(key, "/write/") ||
           strstr(key, "/permit/") || !strcmp(last, "/lock") ||
           !strcmp(last, "/latch") || strstr(key, "holdfast:mark/") ||
           !last[1 + strspn(last + 1, "0123456789abcdef")];
}

long etcd_server_keys(struct etcd_server *s, bool print)
{
    static char out[65536];
    long n = 0;

    if (etcd_server_ctl(s, "get '' --prefix --keys-only", out, sizeof(out)))
        return -1;
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
        if (!is_entry(line))
            continue;
        n++;
        if (print)
            fprintf(stderr, "left behind: %s\n", line);
    }
    return n;
}

static int spawn_missing(struct etcd_cluster *c)
{
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (!c->server[i].pid && server_spawn(&c->server[i].process))
            return -1;
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (server_await(&c->server[i].process))
            return -1;
    return 0;
}

int etcd_cluster_start(struct etcd_cluster *c)
{
    struct etcd_server *s = c->server;

    for (int i = 0; i < ETCD_CLUSTER; i++) {
        s[i].cluster = c->members;
        memmove(s[i].args, s[0].args, sizeof(s->args));
        if (make(&s[i]))
            return -1;
    }
    snprintf(c->members, sizeof(c->members),
             "e%d=http://127.0.0.1:%d,e%d=http://127.0.0.1:%d,"
             "e%d=http://127.0.0.1:%d",
             s[0].peer, s[0].peer, s[1].peer, s[1].peer, s[2].peer, s[2].peer);
    snprintf(c->url, sizeof(c->url),
             "etcd://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", s[0].port,
             s[1].port, s[2].port);
    return spawn_missing(c);
}

int etcd_cluster_heal(struct etcd_cluster *c)
{
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (c->server[i].is_stopped && etcd_server_continue(&c->server[i]))
            return -1;
    return spawn_missing(c);
}

struct etcd_server *etcd_cluster_leader(struct etcd_cluster *c)
{
    for (int i = 0; i < ETCD_CLUSTER; i++) {
        struct etcd_server *s = &c->server[i];

        if (s->pid && !s->is_stopped &&
            strstr(says(s, "/metrics"), "\netcd_server_is_leader 1\n"))
            return s;
    }
    return NULL;
}

struct etcd_server *etcd_cluster_follower(struct etcd_cluster *c, int n)
{
    const struct etcd_server *leader = NULL;
    struct etcd_server *s = c->server;

    if (!WAIT_FOR((leader = etcd_cluster_leader(c))))
        return NULL;
    while (s == leader || n-- > 0)
        s++;
    return s;
}

void etcd_cluster_end(struct etcd_cluster *c)
{
    for (int i = 0; i < ETCD_CLUSTER; i++)
        etcd_server_end(&c->server[i]);
}
