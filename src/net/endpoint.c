#include "endpoint.h"

#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

int hf__net_set_hosts(struct net_endpoint *e, const struct hf__host *host,
                      size_t len, uint16_t port)
{
    size_t size = 0;
    char *hosts, *to;

    for (size_t i = 0; i < len; i++)
        size += strlen(host[i].name) + sizeof(",:65535");
    hosts = to = e->core->alloc(e->client, size);
    if (!hosts)
        return HF_ENOMEM;
    for (size_t i = 0; i < len; i++)
        to += snprintf(to, size - (size_t)(to - hosts), "%s%s:%u", i ? "," : "",
                       host[i].name, host[i].port ? host[i].port : port);
    hf__net_endpoint_fini(e);
    e->hosts = hosts;
    return 0;
}

int hf__net_set_path(struct net_endpoint *e, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof(un.sun_path))
        return HF_EINVAL;
    memcpy(un.sun_path, path, len + 1);
    hf__net_endpoint_fini(e);
    e->len = 1;
    e->addr[0] = (struct net_addr){
        .family = AF_UNIX,
        .len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1)};
    memcpy(&e->addr[0].sa, &un, sizeof(un));
    snprintf(e->addr[0].where, sizeof(e->addr[0].where), "%.79s", path);
    return 0;
}

void hf__net_endpoint_fini(struct net_endpoint *e)
{
    hf__net_connected(e);
    e->core->free(e->client, e->hosts);
    e->hosts = NULL;
}

/* ---- lookup ------------------------------------------------------------ */

/* Sets `host` and `where` of an address. `where` may be cut; `host` has room
 * for every valid host name. */
static void endpoint_call(struct net_addr *a, const char *host)
{
    int len = (int)strcspn(host, ",");
    const char *port = memrchr(host, ':', (size_t)len);
    int name_len = (int)(port - host);

    snprintf(a->host, sizeof(a->host), "%.*s", name_len, host);
    snprintf(a->where, sizeof(a->where),
             strchr(a->host, ':') ? "[%.64s]%.*s" : "%.64s%.*s", a->host,
             len - name_len, port);
}

static void endpoint_add(struct net_endpoint *e, const struct addrinfo *a,
                         const char *host)
{
    struct net_addr *to = &e->addr[e->len];

    if (!a || e->len == NET_ADDRS || a->ai_addrlen > sizeof(to->sa))
        return;
    to->family = a->ai_family;
    to->len = a->ai_addrlen;
    memcpy(&to->sa, a->ai_addr, a->ai_addrlen);
    endpoint_call(to, host);
    e->len++;
}

/* Adds the n-th address of each host. Hosts with fewer addresses are
 * skipped. */
static void endpoint_add_all(struct net_endpoint *e,
                             const struct hf__lookup *found, size_t n)
{
    const char *host = e->hosts;

    for (size_t i = 0; i < found->len; i++) {
        const struct addrinfo *a = found->list[i];

        for (size_t k = 0; a && k < n; k++)
            a = a->ai_next;
        endpoint_add(e, a, host);
        host += strcspn(host, ",") + 1;
    }
}

/* Takes over the addresses that a lookup has found. Keeps the old addresses if
 * it has found none. */
static void endpoint_take(struct net_endpoint *e,
                          const struct hf__lookup *found)
{
    size_t before = e->len;

    e->len = 0;
    for (size_t n = 0; n < NET_ADDRS; n++)
        endpoint_add_all(e, found, n);
    if (!e->len)
        e->len = before;
}

int hf__net_find(struct net_endpoint *e)
{
    struct hf__lookup *found = e->core->lookup(e->hosts, true);
    int rc = found ? found->code : HF_ENOMEM;

    if (rc == HF_EBACKEND)
        (found->may_pass ? e->core->why : e->core->lasts)(e->client, rc, "%s",
                                                          found->why);
    if (!rc)
        endpoint_take(e, found);
    e->core->lookup_leave(found);
    if (rc || e->len)
        return rc;
    return e->core->lasts(e->client, HF_EBACKEND, "%s: no usable address",
                          e->hosts);
}

void hf__net_expect(struct net_endpoint *e)
{
    e->len = 1;
    e->addr[0] = (struct net_addr){.family = AF_UNSPEC};
    endpoint_call(&e->addr[0], e->hosts);
}

static void endpoint_begin_lookup(struct net_endpoint *e)
{
    if (e->hosts && !e->job)
        e->job = e->core->lookup(e->hosts, false);
}

void hf__net_find_again(struct net_endpoint *e, hf__time until)
{
    endpoint_begin_lookup(e);
    e->job_until = until;
}

bool hf__net_is_finding(const struct net_endpoint *e, hf__time now)
{
    return e->job && !e->core->lookup_over(e->job) && now < e->job_until;
}

void hf__net_connected(struct net_endpoint *e)
{
    if (e->job)
        e->core->lookup_leave(e->job);
    e->job = NULL;
}

/* ---- walking over the addresses ----------------------------------------- */

const struct net_addr *hf__net_addr(struct net_endpoint *e, struct net_walk *w)
{
    if (w->at >= e->len)
        w->at = 0; /* e->len is at least 1: open() fails without addresses, or
                      hf__net_expect() has made one */
    if (w->at == 0 && e->job && e->core->lookup_over(e->job)) {
        endpoint_take(e, e->job);
        hf__net_connected(e);
    }
    return &e->addr[w->at];
}

bool hf__net_has_others(const struct net_endpoint *e)
{
    const struct net_addr *end = e->addr + e->len;

    for (const struct net_addr *a = e->addr; a < end; a++)
        for (const struct net_addr *b = a + 1; b < end; b++)
            if (strcmp(a->where, b->where) != 0 ||
                (a->family == b->family && memcmp(&a->sa, &b->sa, a->len) != 0))
                return true;
    return false;
}

bool hf__net_next(const struct net_endpoint *e, struct net_walk *w,
                  bool elsewhere)
{
    for (size_t at = w->at + 1; ++w->tried < e->len; at++) {
        at %= e->len;
        if (elsewhere && strcmp(e->addr[at].host, e->addr[w->at].host) == 0)
            continue;
        w->at = at;
        return true;
    }
    return false;
}

hf__time hf__net_pause(struct net_endpoint *e, struct net_walk *w,
                       uint32_t most_ms, uint32_t chance)
{
    uint32_t ms = NET_BACKOFF_MS;

    w->at = w->tried = 0;
    w->failures++;
    if (w->failures % 4 == 2)
        endpoint_begin_lookup(e);
    for (unsigned i = 1; i < w->failures && ms < most_ms; i++)
        ms = ms * 2 < most_ms ? ms * 2 : most_ms;
    return (ms / 2 + chance % (ms / 2)) * HF__MS;
}
