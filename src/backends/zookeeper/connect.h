/*
 * A connection that is being made: to which addresses, for how long, and
 * whether it is ZooKeeper that answers. Called by session.c alone, with the
 * client's mutex held (hf__zk_first_round() in open(), without).
 */
#ifndef HF_ZK_CONNECT_H
#define HF_ZK_CONNECT_H

#include "zookeeper.h"

/* Addresses in the form that the library takes. It never gets names, because it
 * would look up each of them again before each attempt to connect, with the
 * client's mutex held. */
struct zk_addrs {
    size_t len;      /* how many; in the text the first may be there twice */
    char text[4096]; /* "10.0.0.1:2181,::1:2181" */
};

/* What was found, as the library is to have it. */
void hf__zk_addrs(const struct hf__lookup *, struct zk_addrs *);

/* It went down: names are looked up again, if it stays so for a while. */
void hf__zk_lookup_later(struct zk *, hf__time now);
/* If it is time for that. */
void hf__zk_lookup_again(struct zk *, hf__time now);
/* What was found is used, if it is of any use. */
void hf__zk_take_found(struct zk *);
/* When to call hf__zk_lookup_again() next. */
hf__time hf__zk_lookup_timeout(const struct zk *);

/* The library has no connection, nor is it making one. */
bool hf__zk_is_closed(const struct zk *);
/* It is being opened: at how many addresses. */
void hf__zk_first_round(struct zk *, size_t addresses);
/* Then: an attempt has failed; is it worth another one? */
bool hf__zk_may_try_again(struct zk *);
/* When an attempt to connect has lasted for too long; and ends it then. */
hf__time hf__zk_late_at(const struct zk *);
void hf__zk_give_up_late(struct zk *, hf__time now);
/* Ends it if somebody else answers. */
void hf__zk_refuse_foreign(struct zk *);

#endif
