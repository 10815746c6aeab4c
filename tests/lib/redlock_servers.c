#include "redlock_servers.h"

#include "wait.h"

static void log_in(struct redlock_servers *r, struct redis_server *s)
{
    if (r->password)
        redis_server_do(s, "AUTH %s", r->password);
}

int redlock_servers_start(struct redlock_servers *r)
{
    for (int i = 0; i < REDLOCK_SERVERS; i++) {
        struct redis_server *s = &r->server[i];

        s->tls = r->tls;
        s->certs = i ? r->server[0].dir : NULL;
        s->persist = r->persist;
        if (r->password) {
            s->args[0] = "--requirepass";
            s->args[1] = r->password;
        }
        if (redis_server_start(s))
            return -1;
        log_in(r, s);
    }
    return 0;
}

void redlock_servers_end(struct redlock_servers *r)
{
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        redis_server_end(&r->server[i]);
}

int redlock_servers_heal(struct redlock_servers *r)
{
    for (int i = 0; i < REDLOCK_SERVERS; i++) {
        struct redis_server *s = &r->server[i];

        if (!s->port)
            continue;
        if (s->pid > 0 ? redis_server_continue(s) : redis_server_again(s))
            return -1;
        log_in(r, s);
    }
    return 0;
}

void redlock_servers_url(const struct redlock_servers *r, char *url,
                         size_t size, const char *options)
{
    size_t len = (size_t)snprintf(
        url, size, "redlock://%s%s%s", r->password ? ":" : "",
        r->password ? r->password : "", r->password ? "@" : "");

    for (int i = 0; i < REDLOCK_SERVERS; i++)
        len += (size_t)snprintf(url + len, size - len, "%s127.0.0.1:%d",
                                i ? "," : "", r->server[i].port);
    len += (size_t)snprintf(url + len, size - len, "?%s%s",
                            strstr(options, "max_lease=") ? "" : "max_lease=0&",
                            options);
    if (r->tls)
        snprintf(url + len, size - len, "&tls=yes&cacert=%s/ca.pem",
                 r->server[0].dir);
}

long redlock_servers_keys(struct redlock_servers *r)
{
    long sum = 0;

    for (int i = 0; i < REDLOCK_SERVERS; i++)
        sum += (long)redis_server_keys(&r->server[i]);
    return sum;
}

void redlock_servers_print_keys(struct redlock_servers *r)
{
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        redis_server_print_keys(&r->server[i]);
}
