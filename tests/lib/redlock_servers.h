/* Five independent Redis servers, for Redlock. */
#ifndef TESTS_REDLOCK_SERVERS_H
#define TESTS_REDLOCK_SERVERS_H

#include "redis_server.h"

#include <stddef.h>

enum { REDLOCK_SERVERS = 5 };

struct redlock_servers {
    const char *tls, *password; /* NULL: none; set before */
    bool persist; /* they keep their keys over a restart; the same */
    struct redis_server server[REDLOCK_SERVERS];
};

/* 0, or -1 with a text on stderr. */
int redlock_servers_start(struct redlock_servers *);
void redlock_servers_end(struct redlock_servers *);
/* Those that were stopped go on, those that were killed are started again. */
int redlock_servers_heal(struct redlock_servers *);
/* With these options, which follow a `?` or `&`. Servers that were just started
 * are not out, unless the options say max_lease themselves. */
void redlock_servers_url(const struct redlock_servers *, char *url, size_t size,
                         const char *options);
/* Keys that are there, but for those of tokens. */
long redlock_servers_keys(struct redlock_servers *);
void redlock_servers_print_keys(struct redlock_servers *);

#endif
