/*
 * Host names to addresses. Blocks: only on the keeper, with no lock held. The
 * library gets addresses alone: of names it would look up each of them again
 * before each attempt to connect, with the client's mutex held.
 */
#include "zookeeper.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int look_up(const char *host, const char *port, struct addrinfo **list)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    int rc = getaddrinfo(host, port, &hints, list);

    if (rc != EAI_NONAME && rc != EAI_ADDRFAMILY && rc != EAI_NODATA)
        return rc;
    /* A machine with loopback alone has no "configured" address. */
    hints.ai_flags = AI_NUMERICSERV;
    return getaddrinfo(host, port, &hints, list);
}

/* As the library takes them: no brackets, the last colon is the port's. */
static void append(struct zk_addrs *out, const struct addrinfo *a)
{
    char host[64], port[8];
    size_t len = strlen(out->text);
    int n;

    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    n = snprintf(out->text + len, sizeof(out->text) - len, "%s%s:%s",
                 len ? "," : "", host, port);
    if ((size_t)n >= sizeof(out->text) - len)
        out->text[len] = '\0'; /* enough of them */
    else
        out->len++;
}

int hf__zk_lookup(const char *hosts, struct zk_addrs *out)
{
    bool no_memory = false;
    char host[300], *port;

    *out = (struct zk_addrs){0};
    for (size_t len; *hosts; hosts += len + (hosts[len] == ',')) {
        struct addrinfo *list = NULL;
        int rc = EAI_NONAME;

        len = strcspn(hosts, ",");
        if ((size_t)snprintf(host, sizeof(host), "%.*s", (int)len, hosts) <
                sizeof(host) &&
            (port = strrchr(host, ':'))) {
            *port++ = '\0';
            rc = look_up(host, port, &list);
        }
        if (rc)
            snprintf(out->why, sizeof(out->why), "%.80s: %s", host,
                     gai_strerror(rc));
        no_memory = no_memory || rc == EAI_MEMORY;
        for (const struct addrinfo *a = list; a; a = a->ai_next)
            append(out, a);
        if (list)
            freeaddrinfo(list);
    }
    if (out->len)
        return 0;
    return no_memory ? HF_ENOMEM : HF_EBACKEND;
}
