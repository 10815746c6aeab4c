/* Host names to addresses. Blocks: only on the keeper, with no lock held. */
#include "redis.h"

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

int hf__rd_lookup(const char *host, uint16_t port, struct rd_addrs *addrs,
                  char *text, size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char service[8];
    int rc;

    addrs->len = 0;
    snprintf(service, sizeof(service), "%u", port);
    rc = getaddrinfo(host, service, &hints, &list);
    if (rc == EAI_NONAME || rc == EAI_ADDRFAMILY || rc == EAI_NODATA) {
        /* A machine with loopback alone has no "configured" address. */
        hints.ai_flags = AI_NUMERICSERV;
        rc = getaddrinfo(host, service, &hints, &list);
    }
    if (rc) {
        snprintf(text, size, "%s: %s", host,
                 rc == EAI_MEMORY ? "out of memory" : gai_strerror(rc));
        return rc == EAI_MEMORY ? HF_ENOMEM : HF_EBACKEND;
    }
    for (struct addrinfo *a = list; a && addrs->len < RD_ADDRS;
         a = a->ai_next) {
        struct rd_addr *to = &addrs->at[addrs->len];

        if (a->ai_addrlen > sizeof(to->sa))
            continue;
        to->family = a->ai_family;
        to->len = a->ai_addrlen;
        memcpy(&to->sa, a->ai_addr, a->ai_addrlen);
        addrs->len++;
    }
    freeaddrinfo(list);
    if (addrs->len)
        return 0;
    snprintf(text, size, "%s: no usable address", host);
    return HF_EBACKEND;
}

int hf__rd_unix_addr(const char *path, struct rd_addrs *addrs)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof(un.sun_path))
        return HF_EINVAL;
    memcpy(un.sun_path, path, len + 1);
    addrs->len = 1;
    addrs->at[0].family = AF_UNIX;
    addrs->at[0].len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    memcpy(&addrs->at[0].sa, &un, sizeof(un));
    return 0;
}
