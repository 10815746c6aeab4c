/*
 * The server of src/backends/example for a test, on a loopback port of its own.
 * It dies with the thread that started it, and is ready when it answers.
 */
#ifndef TESTS_EXAMPLE_SERVER_H
#define TESTS_EXAMPLE_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct example_server {
    pid_t pid; /* 0: not running */
    int port;
    int reserved; /* a descriptor that keeps it ours; 0: none */
    char url[64]; /* example://127.0.0.1:port */
};

/* All return 0, or -1 with a text on stderr. */
int example_server_start(struct example_server *);
void example_server_kill(struct example_server *); /* and gone for sure */
/* Again, on the same port; it has forgotten everything. */
int example_server_again(struct example_server *);
int example_server_stop(struct example_server *); /* SIGSTOP, for sure */
int example_server_continue(struct example_server *);
void example_server_end(struct example_server *);

/* How many it has; -1: it does not answer. */
long example_server_holds(const struct example_server *);
long example_server_places(const struct example_server *);
/* Ends all holds. */
int example_server_break(const struct example_server *);

#endif
