/*
 * A real redis-server for a test, or the program that TEST_REDIS names. It
 * listens on a free loopback port and on a Unix socket, has its own directory,
 * and keeps no data across restarts by default. It dies with the thread that
 * started it. redis_server_start() returns when the server has answered PING;
 * it never waits for a fixed time.
 */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

#include "server_process.h"

#include <hiredis/hiredis.h>

#define REDIS_SERVER_ARGS 16

struct redis_server {
    SERVER_PROCESS;
    int port;
    /* Name of its certificate (certs.h), or NULL for no TLS. With TLS, the
     * server's port accepts only TLS. */
    const char *tls;
    bool asks_certificate; /* with TLS: client certificates signed by ca */
    bool persist;          /* keep an append-only file across restarts */
    bool may_load;         /* it may still be loading when its start returns */
    const char *certs;     /* directory of certificates; NULL: its own */
    char socket[96];
    char url[64];       /* redis://127.0.0.1:port */
    char tls_url[128];  /* rediss://127.0.0.1:port?cacert=... */
    char unix_url[112]; /* redis+unix:///socket */
    const char *args[REDIS_SERVER_ARGS]; /* more arguments, NULL at the end */
    redisContext *admin; /* for redis_server_ask; connects when needed */
};

SERVER_VERBS(redis_server)
/* Returns 0, or -1 with a message on stderr. The caller sets tls, persist,
 * args, ... first. */
int redis_server_start(struct redis_server *);
/* Sends a command as the administrator and returns the reply, which the caller
 * frees. Ends the program if there is no reply. */
redisReply *redis_server_ask(struct redis_server *, const char *fmt, ...);
/* Sends a command whose reply is a number, and returns that number; returns -1
 * for an error, and 0 for any other reply. */
long long redis_server_do(struct redis_server *, const char *fmt, ...);
/* Makes the server a replica of the server at that port; returns when the
 * replica has the other server's data. */
int redis_server_follow(struct redis_server *, int port);
/* Returns the number of keys, not counting those of tokens. */
long long redis_server_keys(struct redis_server *);
void redis_server_print_keys(struct redis_server *);

#endif
