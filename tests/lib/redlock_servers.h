/* Five independent Redis servers, for Redlock. */
#ifndef TESTS_REDLOCK_SERVERS_H
#define TESTS_REDLOCK_SERVERS_H

#include "redis_server.h"

#include <stddef.h>

enum { REDLOCK_SERVERS = 5 };

struct redlock_servers {
    const char *tls, *password; /* set before the start; NULL: none */
    bool persist; /* set before the start: keep keys across restarts */
    struct redis_server server[REDLOCK_SERVERS];
};

/* Returns 0, or -1 with a message on stderr. */
int redlock_servers_start(struct redlock_servers *);
void redlock_servers_end(struct redlock_servers *);
/* Continues stopped servers and restarts killed ones. */
int redlock_servers_heal(struct redlock_servers *);
/* Stores the URL with these options ("a=b&c=d"). Unless they set max_lease, the
 * URL has max_lease=0, so that the client uses a restarted server at once. */
void redlock_servers_url(const struct redlock_servers *, char *url, size_t size,
                         const char *options);
/* Returns the number of keys, not counting those of tokens. */
long redlock_servers_keys(struct redlock_servers *);
void redlock_servers_print_keys(struct redlock_servers *);

#endif
