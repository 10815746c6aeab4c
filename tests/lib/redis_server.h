/*
 * A real redis-server for a test, or the program that TEST_REDIS names: on a
 * free loopback port and a Unix socket, in its own directory, without
 * persistence by default. It dies with the thread that started it. It is ready
 * when it answers PONG, never after a sleep.
 */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

#include "server_process.h"

#include <hiredis/hiredis.h>

#define REDIS_SERVER_ARGS 16

struct redis_server {
    SERVER_PROCESS;
    int port;
    const char *tls; /* name of its certificate (certs.h): its port then accepts
                        TLS only. NULL: no TLS */
    bool asks_certificate; /* with TLS: client certificates signed by ca */
    bool persist;          /* keep an append-only file over a restart */
    bool may_load; /* counts as ready as soon as it says that it is loading */
    const char *certs; /* directory of certificates; NULL: its own */
    char socket[96];
    char url[64];       /* redis://127.0.0.1:port */
    char tls_url[128];  /* rediss://127.0.0.1:port?cacert=... */
    char unix_url[112]; /* redis+unix:///socket */
    const char *args[REDIS_SERVER_ARGS]; /* further ones, NULL at the end */
    redisContext *admin; /* for redis_server_ask; connects when needed */
};

SERVER_VERBS(redis_server)
/* Returns 0, or -1 with a message on stderr. The caller sets tls, persist,
 * args, ... before. */
int redis_server_start(struct redis_server *);
/* Sends a command as the administrator; the caller frees the reply. Fails the
 * test if there is none. */
redisReply *redis_server_ask(struct redis_server *, const char *fmt, ...);
/* For commands whose reply is a number: returns it, -1 for an error, 0 for any
 * other reply. */
long long redis_server_do(struct redis_server *, const char *fmt, ...);
/* Makes the server a replica of the one at that port; returns when it has that
 * server's data. */
int redis_server_follow(struct redis_server *, int port);
/* The number of keys, without those of tokens. */
long long redis_server_keys(struct redis_server *);
void redis_server_print_keys(struct redis_server *);

#endif
