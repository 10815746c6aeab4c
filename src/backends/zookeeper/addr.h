/*
 * Addresses in the form that the library takes. It never gets names, because it
 * would look up each of them again, with the client's mutex held. Called by
 * session.c and connect.c.
 */
#ifndef HF_ZK_ADDR_H
#define HF_ZK_ADDR_H

#include "zookeeper.h"

struct zk_addrs {
    size_t len;      /* how many; in the text the first may be there twice */
    char text[4096]; /* "10.0.0.1:2181,::1:2181" */
};

/* What was found, as the library is to have it. */
void hf__zk_addrs(const struct hf__lookup *, struct zk_addrs *);

#endif
