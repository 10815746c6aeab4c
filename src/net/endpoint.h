/*
 * The address of a server: hosts whose names are looked up, or the path of a
 * Unix socket. The lookup by hf__net_find() blocks; every other lookup runs on
 * its own thread. The connections of a client share an endpoint, and each
 * connection tries the addresses independently (link.h). The client's mutex is
 * held, except in hf__net_find().
 */
#ifndef HF_NET_ENDPOINT_H
#define HF_NET_ENDPOINT_H

#include "stream.h"

#define NET_ADDRS 16
#define NET_BACKOFF_MS 10 /* the longest pause after the first failure */

struct net_endpoint {
    const struct hf__core *core;
    hf_client *client;
    char *hosts; /* "host:port,host:port", or NULL for a path */
    size_t len;  /* addresses in addr; at least 1 once the backend is open */
    struct net_addr addr[NET_ADDRS];
    struct hf__lookup *job; /* a lookup that is running or done, or NULL */
    hf__time job_until;     /* until when connections wait for `job`, or 0 if
                               they do not wait */
};

/* How far a connection has got in trying the addresses. */
struct net_walk {
    size_t at;         /* the address being tried */
    size_t tried;      /* addresses that failed in this round (see link.h) */
    unsigned failures; /* failed rounds, and connections that were up only
                          briefly, in a row */
};

/* Replaces the hosts. Connections use the addresses of the new hosts once a
 * lookup has found them. `port` is for hosts without a port. Returns 0 or
 * HF_ENOMEM. */
int hf__net_set_hosts(struct net_endpoint *, const struct hf__host *,
                      size_t len, uint16_t port);
/* Replaces the hosts with the path of a Unix socket. Returns 0, or HF_EINVAL if
 * the path is too long. */
int hf__net_set_path(struct net_endpoint *, const char *path);
void hf__net_endpoint_fini(struct net_endpoint *);

/* Looks up the hosts, for open(). Blocks. Returns 0, or an error code whose
 * message has been set. */
int hf__net_find(struct net_endpoint *);
/* Must be called instead of hf__net_find() if the hosts are not looked up at
 * once. Makes an address that connections cannot use: they fail until a later
 * lookup has found the hosts. */
void hf__net_expect(struct net_endpoint *);
/* The name may lead to a different server now: starts a lookup, unless one is
 * running or done already. Connections wait for its result, at most until
 * `until`. */
void hf__net_find_again(struct net_endpoint *, hf__time until);
bool hf__net_is_finding(const struct net_endpoint *, hf__time now);
/* Drops the lookup, because a connection is up. The result would be out of date
 * by the time it is needed. */
void hf__net_connected(struct net_endpoint *);

/* Returns the address to connect to. If that is the first address and a lookup
 * has finished, takes over the result of the lookup before it returns. */
const struct net_addr *hf__net_addr(struct net_endpoint *, struct net_walk *);
/* Returns whether there may be more than one server, that is, if there are
 * several hosts, or one host with several addresses of the same family. An IPv4
 * and an IPv6 address probably belong to the same server. */
bool hf__net_has_others(const struct net_endpoint *);
/* Moves to the next address (after the last, to the first), because the current
 * one has failed. If `elsewhere`, moves only to an address of a different host,
 * because the current host has answered and would answer the same at its other
 * addresses. Returns false if no address is left in this round (see link.h). */
bool hf__net_next(const struct net_endpoint *, struct net_walk *,
                  bool elsewhere);
/* Begins a new round, because all addresses have failed or the last connection
 * was up only briefly. Some rounds begin with a lookup. Returns how long to
 * pause before the round: less than most_ms or NET_BACKOFF_MS, whichever is
 * longer. `chance` is a random number. */
hf__time hf__net_pause(struct net_endpoint *, struct net_walk *,
                       uint32_t most_ms, uint32_t chance);

#endif
