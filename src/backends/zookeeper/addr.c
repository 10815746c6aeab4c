/*
 * Addresses, as the library takes them. It never gets names: it would look up
 * each of them again before each attempt to connect, with the client's mutex
 * held.
 */
#include "addr.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

/* No brackets: the last colon is the port's. */
static void addr_append(struct zk_addrs *out, const struct addrinfo *a)
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

/* The library goes two steps on after each failure: of an even number it would
 * never come to half of them. */
static void addr_make_odd(struct zk_addrs *out)
{
    size_t len = strlen(out->text), first = strcspn(out->text, ",");

    if (out->len % 2 || !out->len)
        return;
    if (len + 1 + first < sizeof(out->text)) {
        out->text[len] = ',';
        memcpy(out->text + len + 1, out->text, first);
        out->text[len + 1 + first] = '\0';
    } else {
        *strrchr(out->text, ',') = '\0';
        out->len--;
    }
}

void hf__zk_addrs(const struct hf__lookup *found, struct zk_addrs *out)
{
    *out = (struct zk_addrs){0};
    for (size_t i = 0; i < found->len; i++)
        for (const struct addrinfo *a = found->list[i]; a; a = a->ai_next)
            addr_append(out, a);
    addr_make_odd(out);
}
