/*
 * The server of src/backends/example for a test, on its own loopback port. It
 * dies with the thread that started it. example_server_start() returns when the
 * server has answered.
 */
#ifndef TESTS_EXAMPLE_SERVER_H
#define TESTS_EXAMPLE_SERVER_H

#include "server_process.h"

struct example_server {
    SERVER_PROCESS;
    int port;
    char url[64]; /* example://127.0.0.1:port */
};

/* A restarted server remembers nothing. */
SERVER_VERBS(example_server)
/* Returns 0, or -1 with a message on stderr. */
int example_server_start(struct example_server *);

/* Return the number of holds and of waiters' places, or -1 if the server does
 * not answer. */
long example_server_holds(const struct example_server *);
long example_server_places(const struct example_server *);
/* Ends all holds. */
int example_server_break(const struct example_server *);

#endif
