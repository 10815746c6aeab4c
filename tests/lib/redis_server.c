#include "redis_server.h"

#include "../../lab/servers/port.h"
#include "certs.h"
#include "server_process.h"
#include "shm_dir.h"

#include <stdarg.h>
#include <stdlib.h>

static void run(struct redis_server *s, pid_t parent)
{
    const char *certs = s->certs ? s->certs : s->dir;
    char port[16], log[96], cert[96], key[96], ca[96];
    const char *tls[] = {"--port",
                         "0",
                         "--tls-cert-file",
                         cert,
                         "--tls-key-file",
                         key,
                         "--tls-ca-cert-file",
                         ca,
                         "--tls-auth-clients",
                         s->asks_certificate ? "yes" : "no",
                         NULL};
    const char *other = getenv("TEST_REDIS");
    const char *argv[40 + REDIS_SERVER_ARGS] = {
        other ? other : "redis-server",
        s->tls ? "--tls-port" : "--port",
        port,
        "--bind",
        "127.0.0.1",
        "--dir",
        s->dir,
        "--unixsocket",
        s->socket,
        "--save",
        "",
        "--appendonly",
        s->persist ? "yes" : "no",
        "--appendfsync",
        "always",
        "--logfile",
        log,
        "--daemonize",
        "no",
        "--repl-diskless-sync-delay",
        "0",
    };
    size_t n = 0;

    while (argv[n])
        n++;
    for (size_t i = 0; s->tls && tls[i]; i++)
        argv[n++] = tls[i];
    for (size_t i = 0; i < REDIS_SERVER_ARGS && s->args[i]; i++)
        argv[n++] = s->args[i];
    snprintf(port, sizeof(port), "%d", s->port);
    snprintf(log, sizeof(log), "%s/log", s->dir);
    snprintf(cert, sizeof(cert), "%s/%s.pem", certs, s->tls ? s->tls : "");
    snprintf(key, sizeof(key), "%s/%s.key", certs, s->tls ? s->tls : "");
    snprintf(ca, sizeof(ca), "%s/ca.pem", certs);
    server_process_exec(argv, parent);
}

static void forget_admin(struct redis_server *s)
{
    if (s->admin)
        redisFree(s->admin);
    s->admin = NULL;
}

/* Reaps the server if it has ended. */
static bool ended(struct redis_server *s)
{
    if (waitpid(s->pid, NULL, WNOHANG) != s->pid)
        return false;
    s->pid = 0;
    return true;
}

static bool answers(struct redis_server *s)
{
    redisContext *c = redisConnectUnix(s->socket);
    redisReply *reply = c && !c->err ? redisCommand(c, "PING") : NULL;
    /* With a password NOAUTH is as good. */
    bool ok = reply && (s->may_load || strncmp(reply->str, "LOADING", 7) != 0);

    freeReplyObject(reply);
    if (c)
        redisFree(c);
    return ok;
}

int redis_server_again(struct redis_server *s)
{
    pid_t parent = getpid();

    forget_admin(s);
    unlink(s->socket);
    s->pid = fork();
    if (s->pid == 0)
        run(s, parent);
    if (s->pid < 0)
        return -1;
    if (!WAIT_FOR(ended(s) || answers(s)) || !s->pid)
        return -1;
    return 0;
}

int redis_server_start(struct redis_server *s)
{
    /* What it syncs has to wait for no disk. */
    if (!shm_dir_make(s->dir, sizeof(s->dir), "holdfast-redis"))
        return -1;
    snprintf(s->socket, sizeof(s->socket), "%s/socket", s->dir);
    snprintf(s->unix_url, sizeof(s->unix_url), "redis+unix://%s", s->socket);
    s->reserved = port_reserve(&s->port);
    snprintf(s->url, sizeof(s->url), "redis://127.0.0.1:%d", s->port);
    snprintf(s->tls_url, sizeof(s->tls_url),
             "rediss://127.0.0.1:%d?cacert=%s/ca.pem", s->port, s->dir);
    if (s->tls && !s->certs && certs_make(s->dir))
        return -1;
    if (s->reserved >= 0 && !redis_server_again(s))
        return 0;
    fprintf(stderr, "redis-server does not start; see %s/log\n", s->dir);
    return -1;
}

void redis_server_kill(struct redis_server *s)
{
    forget_admin(s);
    server_process_kill(&s->pid);
}

int redis_server_stop(struct redis_server *s)
{
    return server_process_stop(s->pid);
}

int redis_server_continue(struct redis_server *s)
{
    return kill(s->pid, SIGCONT);
}

void redis_server_end(struct redis_server *s)
{
    redis_server_kill(s);
    port_give_back(&s->reserved);
    if (s->dir[0])
        server_dir_remove(s->dir);
    s->dir[0] = '\0';
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
