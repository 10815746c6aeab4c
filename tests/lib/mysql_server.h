/*
 * A real mariadbd for a test, or the MariaDB or MySQL in the directory that
 * TEST_MYSQL names: on a free loopback port and a unix socket, with its data in
 * memory, in a directory of its own. It dies with the thread that started it.
 * It is ready when it answers a statement, never after a sleep.
 *
 * It has the database `locks` and the user `worker` with a password, who may
 * read and write there and make tables. root is the administrator, over the
 * socket and without a password.
 */
#ifndef TESTS_MYSQL_SERVER_H
#define TESTS_MYSQL_SERVER_H

#include "server_process.h"

#define MY_SERVER_ARGS 8
#define MY_SERVER_USER "worker"
#define MY_SERVER_SECRET "Geheimnis-7391"
#define MY_SERVER_DB "locks"
/* What a user needs who finds the tables, on each of them. */
#define MY_SERVER_GRANTS "select, insert, update, delete"

struct my_server {
    SERVER_PROCESS;
    int port;        /* on 127.0.0.1 */
    const char *tls; /* its certificate (certs.h): who has it may use TLS.
                        NULL: no TLS */
    bool durable;    /* data on disk, and synced: the server's defaults */
    char socket[96];
    char url[128];     /* mysql://worker:secret@127.0.0.1:port/locks */
    char tls_url[224]; /* the same with tls=yes and cacert */
    const char *args[MY_SERVER_ARGS]; /* more of them, NULL at the end */
    struct st_mysql *admin;
};

SERVER_VERBS(my_server)
/* 0, or -1 with a text on stderr. Set tls, args before. */
int my_server_start(struct my_server *);
/* The URL of the worker at that port, with these options ("?a=b", or ""). */
void my_server_url_at(int port, const char *options, char *url, size_t size);

/*
 * Statements of the administrator, in the database of the locks. They fail the
 * test if there is no answer.
 */
/* The error number; 0: it was done. */
unsigned my_server_try(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* It is done; how many rows it has changed. */
long long my_server_do(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The first value of the answer, or -1: there is none, or no such table. */
long long my_server_number(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same as a text; "" if there is none. Valid until the next one. */
const char *my_server_text(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* How many connections the worker has; those that wait for a
 * lock. */
long my_server_connections(struct my_server *);
long my_server_waiting(struct my_server *);
/* Rows of holds that are not over, and connections that wait; may print them.
 */
long my_server_left(struct my_server *, bool print);
/* Everything of ours is deleted, but for the tokens. */
void my_server_empty(struct my_server *);

#endif
