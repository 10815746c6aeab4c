/* Addresses, as connect(2) takes them. */
#include "redis.h"

#include <netdb.h>
#include <string.h>
#include <sys/un.h>

void hf__rd_addrs(const struct hf__lookup *found, struct rd_addrs *addrs)
{
    const struct addrinfo *a = found->list[0];

    for (addrs->len = 0; a && addrs->len < RD_ADDRS; a = a->ai_next) {
        struct rd_addr *to = &addrs->at[addrs->len];

        if (a->ai_addrlen > sizeof(to->sa))
            continue;
        to->family = a->ai_family;
        to->len = a->ai_addrlen;
        memcpy(&to->sa, a->ai_addr, a->ai_addrlen);
        addrs->len++;
    }
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
