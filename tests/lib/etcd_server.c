#include "etcd_server.h"

#include "../../lab/servers/port.h"
#include "certs.h"
#include "server_process.h"
#include "shm_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the process -------------------------------------------------------- */

static void run(struct etcd_server *s, pid_t parent)
{
    char name[32], data[96], client[64], peer[64], look[64], alone[80],
        cert[96], key[96], ca[96], log[96];
    const char *other = s->program ? s->program : getenv("TEST_ETCD");
    const char *argv[48] = {
        other ? other : "etcd",
        name,
        "--data-dir",
        data,
        "--listen-client-urls",
        client,
        "--advertise-client-urls",
        client,
        "--listen-peer-urls",
        peer,
        "--initial-advertise-peer-urls",
        peer,
        "--initial-cluster",
        s->cluster ? s->cluster : alone,
        "--listen-metrics-urls",
        look,
        /* A lease lasts a second at least, an election is short. Those who
           are alone elect nobody because the machine stands still. */
        s->cluster ? "--heartbeat-interval=50" : "--heartbeat-interval=10",
        s->cluster ? "--election-timeout=500" : "--election-timeout=100",
        "--bcrypt-cost=4", /* a password is checked at once */
        "--logger=zap",
        "--log-level=error",
    };
    size_t n = 0;
    int fd;

    while (argv[n])
        n++;
    snprintf(name, sizeof(name), "--name=e%d", s->peer);
    snprintf(data, sizeof(data), "%s/data", s->dir);
    snprintf(client, sizeof(client), "http%s://127.0.0.1:%d", s->tls ? "s" : "",
             s->port);
    snprintf(peer, sizeof(peer), "http://127.0.0.1:%d", s->peer);
    snprintf(look, sizeof(look), "http://127.0.0.1:%d", s->look);
    snprintf(alone, sizeof(alone), "e%d=%s", s->peer, peer);
    snprintf(cert, sizeof(cert), "--cert-file=%s/%s.pem", s->dir,
             s->tls ? s->tls : "");
    snprintf(key, sizeof(key), "--key-file=%s/%s.key", s->dir,
             s->tls ? s->tls : "");
    snprintf(ca, sizeof(ca), "--trusted-ca-file=%s/ca.pem", s->dir);
    snprintf(log, sizeof(log), "%s/log", s->dir);
    if (s->tls) {
        argv[n++] = cert;
        argv[n++] = key;
    }
    if (s->tls && s->asks_certificate) {
        argv[n++] = ca;
        argv[n++] = "--client-cert-auth";
    }
    for (size_t i = 0; i < ETCD_SERVER_ARGS && s->args[i]; i++)
        argv[n++] = s->args[i];
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    setenv("ETCD_UNSUPPORTED_ARCH", "arm64",
           1); /* for others it says nothing */
    server_process_exec(argv, parent);
}

/* Reaps the server if it has ended. */
static bool ended(struct etcd_server *s)
{
    if (waitpid(s->pid, NULL, WNOHANG) != s->pid)
        return false;
    s->pid = 0;
    return true;
}

/* What it says at that path of the port `look`; "" if it says nothing. */
static const char *says(const struct etcd_server *s, const char *path)
{
    static char buf[256 << 10];
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)s->look)};
    struct timeval limit = {.tv_sec = 2};
    size_t len = 0;
    ssize_t n = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0 &&
        dprintf(fd, "GET %s HTTP/1.0\r\n\r\n", path) > 0)
        while (n > 0 && len < sizeof(buf) - 1) {
            n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0);
            len += n > 0 ? (size_t)n : 0;
        }
    close(fd);
    buf[len] = '\0';
    return buf;
}

static bool answers(const struct etcd_server *s)
{
    return strstr(says(s, "/health"), "\"health\":\"true\"");
}

double etcd_server_metric(const struct etcd_server *s, const char *name)
{
    const char *at = strstr(says(s, "/metrics"), name);

    return at ? strtod(at + strlen(name), NULL) : -1;
}

static int spawn(struct etcd_server *s)
{
    pid_t parent = getpid();

    s->pid = fork();
    s->is_stopped = false;
    if (s->pid == 0)
        run(s, parent);
    return s->pid < 0 ? -1 : 0;
}

static int await(struct etcd_server *s)
{
    if (WAIT_FOR(ended(s) || answers(s)) && s->pid)
        return 0;
    fprintf(stderr, "etcd does not start; see %s/log\n", s->dir);
    return -1;
}

int etcd_server_again(struct etcd_server *s)
{
    return spawn(s) || await(s) ? -1 : 0;
}

static int make(struct etcd_server *s)
{
    int *port[] = {&s->port, &s->peer, &s->look};

    if (!shm_dir_make(s->dir, sizeof(s->dir), "holdfast-etcd"))
        return -1;
    for (int i = 0; i < 3; i++) {
        s->reserved[i] = port_reserve(port[i]);
        if (s->reserved[i] < 0)
            return -1;
    }
    snprintf(s->url, sizeof(s->url), "etcd://127.0.0.1:%d", s->port);
    snprintf(s->tls_url, sizeof(s->tls_url),
             "etcds://127.0.0.1:%d?cacert=%s/ca.pem", s->port, s->dir);
    return s->tls ? certs_make(s->dir) : 0;
}

int etcd_server_start(struct etcd_server *s)
{
    return make(s) || etcd_server_again(s) ? -1 : 0;
}

void etcd_server_kill(struct etcd_server *s)
{
    server_process_kill(&s->pid);
    s->is_stopped = false;
}

int etcd_server_stop(struct etcd_server *s)
{
    s->is_stopped = true;
    return server_process_stop(s->pid);
}

int etcd_server_continue(struct etcd_server *s)
{
    s->is_stopped = false;
    return kill(s->pid, SIGCONT);
}

int etcd_server_empty(struct etcd_server *s)
{
    char data[96];

    etcd_server_kill(s);
    snprintf(data, sizeof(data), "%s/data", s->dir);
    return server_dir_remove(data) || etcd_server_again(s) ? -1 : 0;
}

void etcd_server_end(struct etcd_server *s)
{
    etcd_server_kill(s);
    for (int i = 0; i < 3; i++)
        port_give_back(&s->reserved[i]);
    if (s->dir[0])
        server_dir_remove(s->dir);
    s->dir[0] = '\0';
}

/* ---- the administrator -----------------------------------------------------
 */

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

/* Not what hf_lock_put() has written, and not the client's guard. */
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

/* ---- a cluster ------------------------------------------------------------
 */

static int spawn_missing(struct etcd_cluster *c)
{
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (!c->server[i].pid && spawn(&c->server[i]))
            return -1;
    for (int i = 0; i < ETCD_CLUSTER; i++)
        if (await(&c->server[i]))
            return -1;
    return 0;
}

int etcd_cluster_start(struct etcd_cluster *c)
{
    struct etcd_server *s = c->server;

    for (int i = 0; i < ETCD_CLUSTER; i++) {
        s[i].cluster = c->members;
        memcpy(s[i].args, s[0].args, sizeof(s->args));
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
