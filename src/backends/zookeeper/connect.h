/*
 * Connects to a server: chooses which addresses are tried and for how long, and
 * checks that a ZooKeeper server answers. The library by itself would wait for
 * most of the session's timeout for a server that accepts a connection and
 * sends nothing, would accept any answer as ZooKeeper's, and would never notice
 * that a server has moved. Called only by session.c, with the client's mutex
 * held; while opening, it calls hf__zk_addrs() and hf__zk_first_round() without
 * the mutex.
 */
#ifndef HF_ZK_CONNECT_H
#define HF_ZK_CONNECT_H

#include "zookeeper.h"

/* Addresses in the form that the library takes. The library never gets host
 * names, because it would look them up before each attempt to connect, with the
 * client's mutex held. */
struct zk_addrs {
    size_t len;      /* number of addresses, without a repetition that
                        hf__zk_addrs() may add */
    char text[4096]; /* for example "10.0.0.1:2181,::1:2181" */
};

/* Converts the addresses that a lookup has found to the library's form. */
void hf__zk_addrs(const struct hf__lookup *, struct zk_addrs *);

/* Schedules the next lookup of the host names. The lookup is skipped if the
 * connection is up at that time. */
void hf__zk_lookup_later(struct zk *, hf__time now);
/* Gives new addresses to the library if a lookup has finished, and starts a
 * lookup if one is due. */
void hf__zk_lookup_move(struct zk *, hf__time now);
/* Returns when to call hf__zk_lookup_move() next. */
hf__time hf__zk_lookup_timeout(const struct zk *);

/* Returns true if the ZooKeeper library is neither connected nor connecting. */
bool hf__zk_is_closed(const struct zk *);
/* Sets the time limits for opening with this number of addresses. */
void hf__zk_first_round(struct zk *, size_t addresses);
/* Counts a failed attempt while opening, and returns whether there is time and
 * an address for another attempt. */
bool hf__zk_may_try_again(struct zk *);
/* Returns when the current attempt to connect will have taken too long. */
hf__time hf__zk_late_at(const struct zk *);
/* Ends the current attempt if it has taken too long. */
void hf__zk_give_up_late(struct zk *, hf__time now);
/* Ends the current attempt if the server is not ZooKeeper. */
void hf__zk_refuse_foreign(struct zk *);

#endif
