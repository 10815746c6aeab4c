/* Adds a loopback address to an endpoint, so that no lookup is needed. */
#ifndef TESTS_LOOPBACK_H
#define TESTS_LOOPBACK_H

#include "net/endpoint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static inline void add_address(struct net_endpoint *peer, int port)
{
    struct net_addr *a = &peer->addr[peer->len++];
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};

    a->family = AF_INET;
    a->len = sizeof(in);
    memcpy(&a->sa, &in, sizeof(in));
    strcpy(a->host, "localhost");
    snprintf(a->where, sizeof(a->where), "localhost:%d", port);
}

#endif
