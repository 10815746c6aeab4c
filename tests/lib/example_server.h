/*
 * The server of src/backends/example for a test, on a loopback port of its own.
 * It dies with the thread that started it, and is ready when it answers.
 */
#ifndef TESTS_EXAMPLE_SERVER_H
#define TESTS_EXAMPLE_SERVER_H

#include "server_process.h"

struct example_server {
    SERVER_PROCESS;
    int port;
    char url[64]; /* example://127.0.0.1:port */
};

/* Started again, it has forgotten everything. */
SERVER_VERBS(example_server)
/* 0, or -1 with a text on stderr. */
int example_server_start(struct example_server *);

/* How many it has; -1: it does not answer. */
long example_server_holds(const struct example_server *);
long example_server_places(const struct example_server *);
/* Ends all holds. */
int example_server_break(const struct example_server *);

#endif
