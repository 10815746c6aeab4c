#include "redis_server.h"

#include "certs.h"
#include "wait.h"

#include <stdarg.h>

static void run(void *server)
{
    struct redis_server *s = server;
    const char *certs = s->certs ? s->certs : s->dir;
    const char *other = getenv("TEST_REDIS");
    static const char *const fixed[] = {"--bind",
                                        "127.0.0.1",
                                        "--save",
                                        "",
                                        "--appendfsync",
                                        "always",
                                        "--daemonize",
                                        "no",
                                        "--repl-diskless-sync-delay",
                                        "0",
                                        "--dir"};
    struct server_args a = {0};

    unlink(s->socket);
    server_arg(&a, "%s", other ? other : "redis-server");
    server_args(&a, fixed, sizeof(fixed) / sizeof(*fixed));
    server_arg(&a, "%s", s->dir);
    server_arg(&a, "--unixsocket");
    server_arg(&a, "%s", s->socket);
    server_arg(&a, "--appendonly");
    server_arg(&a, s->persist ? "yes" : "no");
    server_arg(&a, s->tls ? "--tls-port" : "--port");
    server_arg(&a, "%d", s->port);
    if (s->tls) {
        server_args(&a, (const char *[]){"--port", "0", "--tls-cert-file"}, 3);
        server_arg(&a, "%s/%s.pem", certs, s->tls);
        server_arg(&a, "--tls-key-file");
        server_arg(&a, "%s/%s.key", certs, s->tls);
        server_arg(&a, "--tls-ca-cert-file");
        server_arg(&a, "%s/ca.pem", certs);
        server_arg(&a, "--tls-auth-clients");
        server_arg(&a, s->asks_certificate ? "yes" : "no");
    }
    server_args(&a, s->args, REDIS_SERVER_ARGS);
    server_exec(&s->process, &a);
}

static void forget_admin(void *server)
{
    struct redis_server *s = server;

    if (s->admin)
        redisFree(s->admin);
    s->admin = NULL;
}

static bool answers(void *server)
{
    struct redis_server *s = server;
    redisContext *c = redisConnectUnix(s->socket);
    redisReply *reply = c && !c->err ? redisCommand(c, "PING") : NULL;
    /* If the server has a password, the reply is NOAUTH, which also shows that
     * the server answers. */
    bool ok = reply && (s->may_load || strncmp(reply->str, "LOADING", 7) != 0);

    freeReplyObject(reply);
    if (c)
        redisFree(c);
    return ok;
}

int redis_server_start(struct redis_server *s)
{
    static const struct server_kind kind = {
        .name = "redis-server",
        .run = run,
        .answers = answers,
        .forget = forget_admin,
    };

    s->kind = &kind;
    /* The directory is in memory, so that no sync has to wait for a disk. */
    if (server_dir(&s->process, "holdfast-redis", false) ||
        server_port(&s->process, &s->port))
        return -1;
    snprintf(s->socket, sizeof(s->socket), "%s/socket", s->dir);
    snprintf(s->unix_url, sizeof(s->unix_url), "redis+unix://%s", s->socket);
    snprintf(s->url, sizeof(s->url), "redis://127.0.0.1:%d", s->port);
    snprintf(s->tls_url, sizeof(s->tls_url),
             "rediss://127.0.0.1:%d?cacert=%s/ca.pem", s->port, s->dir);
    if (s->tls && !s->certs && certs_make(s->dir))
        return -1;
    return server_again(&s->process);
}

static redisReply *vask(struct redis_server *s, const char *fmt, va_list ap)
{
    redisReply *reply;

    if (!s->admin)
        s->admin = redisConnectUnix(s->socket);
    reply =
        s->admin && !s->admin->err ? redisvCommand(s->admin, fmt, ap) : NULL;
    if (!reply) {
        fprintf(stderr, "the server does not answer: %s\n", fmt);
        abort();
    }
    return reply;
}

redisReply *redis_server_ask(struct redis_server *s, const char *fmt, ...)
{
    redisReply *reply;
    va_list ap;

    va_start(ap, fmt);
    reply = vask(s, fmt, ap);
    va_end(ap);
    return reply;
}

long long redis_server_do(struct redis_server *s, const char *fmt, ...)
{
    redisReply *reply;
    long long number = 0;
    va_list ap;

    va_start(ap, fmt);
    reply = vask(s, fmt, ap);
    va_end(ap);
    if (reply->type == REDIS_REPLY_INTEGER)
        number = reply->integer;
    else if (reply->type == REDIS_REPLY_ERROR)
        number = -1;
    freeReplyObject(reply);
    return number;
}

static bool is_linked(struct redis_server *s)
{
    redisReply *reply = redis_server_ask(s, "INFO replication");
    bool up = strstr(reply->str, "master_link_status:up");

    freeReplyObject(reply);
    return up;
}

int redis_server_follow(struct redis_server *s, int port)
{
    redis_server_do(s, "REPLICAOF 127.0.0.1 %d", port);
    return WAIT_FOR(is_linked(s)) ? 0 : -1;
}

static bool is_token(const char *key)
{
    return !strncmp(key, "redisson_lock_token:", 20) ||
           !strncmp(key, "holdfast:token:", 15) ||
           !strncmp(key, "holdfast:reserve:", 17);
}

static long long count(struct redis_server *s, bool print)
{
    redisReply *reply = redis_server_ask(s, "KEYS *");
    long long n = 0;

    for (size_t i = 0; i < reply->elements; i++) {
        if (is_token(reply->element[i]->str))
            continue;
        n++;
        if (print)
            fprintf(stderr, "left behind: %s\n", reply->element[i]->str);
    }
    freeReplyObject(reply);
    return n;
}

long long redis_server_keys(struct redis_server *s)
{
    return count(s, false);
}

void redis_server_print_keys(struct redis_server *s)
{
    count(s, true);
}
