/*
 * Where a server is: hosts whose names are looked up, or the path of a socket.
 * The first lookup blocks; later ones run on a thread for which nobody waits.
 * The connections of a client share an endpoint, and each walks over its
 * addresses by itself (link.h).
 */
#ifndef HF_NET_ENDPOINT_H
#define HF_NET_ENDPOINT_H

#include "stream.h"

#define NET_ADDRS 16
#define NET_BACKOFF_MS 10 /* after the first failure, at most */

struct net_endpoint {
    const struct hf__core *core;
    hf_client *client;
    char *hosts; /* "host:port,host:port"; NULL: it is a path */
    size_t len;  /* of addr; never 0 once they were found */
    struct net_addr addr[NET_ADDRS];
    struct hf__lookup *job; /* under way, or over; NULL */
    hf__time job_until;     /* connections wait for it; 0: they do not */
};

/* One connection's way. */
struct net_walk {
    size_t at;         /* the address that is tried */
    size_t tried;      /* of this round, without it */
    unsigned failures; /* in a row: rounds that failed, short lives */
};

/* Others than before, if there were any: their addresses are used once a
 * lookup is over. `port` is of those that have none. 0, HF_ENOMEM. */
int hf__net_set_hosts(struct net_endpoint *, const struct hf__host *,
                      size_t len, uint16_t port);
/* HF_EINVAL: it is too long. */
int hf__net_set_path(struct net_endpoint *, const char *path);
void hf__net_endpoint_fini(struct net_endpoint *);

/* Blocks: for open(). 0, or a code whose text is set. */
int hf__net_find(struct net_endpoint *);
/* Its host is not known yet: connections fail until a lookup has found it. */
void hf__net_expect(struct net_endpoint *);
/* The name may lead elsewhere: who connects next waits for a lookup until
 * then. */
void hf__net_find_again(struct net_endpoint *, hf__time until);
bool hf__net_is_finding(const struct net_endpoint *, hf__time now);
/* A connection is up: what is looked up now would be old when it is needed. */
void hf__net_connected(struct net_endpoint *);

/* The address to connect to. */
const struct net_addr *hf__net_addr(struct net_endpoint *, struct net_walk *);
/* There may be more than one server: there are several hosts, or one with
 * several addresses of one family. An IPv4 and an IPv6 address are likely to be
 * those of one server. */
bool hf__net_has_others(const struct net_endpoint *);
/* The address did not work: goes to the next one, the first behind the last;
 * elsewhere: of another host, because this one has answered. false: each had
 * its turn. */
bool hf__net_next(const struct net_endpoint *, struct net_walk *,
                  bool elsewhere);
/* No address worked, or none for long: begins anew. Looks the name up now and
 * then. Returns how long to wait; chance: any number. */
hf__time hf__net_pause(struct net_endpoint *, struct net_walk *,
                       uint32_t most_ms, uint32_t chance);

#endif
