/*
 * A real redis-server for a test, or the program that TEST_REDIS names: on a
 * free loopback port and a unix socket, in a directory of its own, without
 * persistence unless asked for. It dies with the thread that started it, and
 * readiness is a PONG, never a sleep.
 */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

#include "server_process.h"

#include <hiredis/hiredis.h>

#define REDIS_SERVER_ARGS 16

struct redis_server {
    SERVER_PROCESS;
    int port;
    const char *tls;       /* its certificate (certs.h): TLS on its port, and
                              nothing else there. NULL: no TLS */
    bool asks_certificate; /* with TLS: of a client, signed by ca */
    bool persist;          /* keeps an append-only file over a restart */
    bool may_load; /* it is ready as soon as it says that it loads its data */
    const char *certs; /* the directory with it; NULL: made in its own */
    char socket[96];
    char url[64];       /* redis://127.0.0.1:port */
    char tls_url[128];  /* rediss://127.0.0.1:port?cacert=... */
    char unix_url[112]; /* redis+unix:///socket */
    const char *args[REDIS_SERVER_ARGS]; /* more of them, NULL at the end */
    redisContext *admin; /* for redis_server_ask; connects when needed */
};

SERVER_VERBS(redis_server)
/* 0, or -1 with a text on stderr. Set tls, persist, args ... before. */
int redis_server_start(struct redis_server *);
/* A command as the administrator; the reply is the caller's to free. Fails
 * the test if there is none. */
redisReply *redis_server_ask(struct redis_server *, const char *fmt, ...);
/* The same for commands that answer a number (-1: an error, 0: an answer that
 * is no number). */
long long redis_server_do(struct redis_server *, const char *fmt, ...);
/* Becomes a replica of the server at that port, and has what that has. */
int redis_server_follow(struct redis_server *, int port);
/* Keys that are there, but for those of tokens. */
long long redis_server_keys(struct redis_server *);
void redis_server_print_keys(struct redis_server *);

#endif
