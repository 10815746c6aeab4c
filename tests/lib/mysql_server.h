/*
 * A real mariadbd for a test, or the MariaDB or MySQL in the directory that
 * TEST_MYSQL names. It listens on a free loopback port and on a Unix socket,
 * and has its own directory, with its data in memory. It dies with the thread
 * that started it. my_server_start() returns when the server has answered a
 * statement; it never waits for a fixed time.
 *
 * The server has the database `locks` and the user `worker` with a password,
 * who may read, write and create tables there. root is the administrator, on
 * the socket and without a password.
 */
#ifndef TESTS_MYSQL_SERVER_H
#define TESTS_MYSQL_SERVER_H

#include "server_process.h"

#define MY_SERVER_ARGS 8
#define MY_SERVER_USER "worker"
#define MY_SERVER_SECRET "Geheimnis-7391"
#define MY_SERVER_DB "locks"
/* The rights that a user needs on each table if the tables already exist. */
#define MY_SERVER_GRANTS "select, insert, update, delete"

struct my_server {
    SERVER_PROCESS;
    int port;        /* on 127.0.0.1 */
    const char *tls; /* name of its certificate (certs.h), or NULL: no TLS */
    bool durable;    /* data on disk and synced, the server's default */
    char socket[96];
    char url[128];     /* mysql://worker:secret@127.0.0.1:port/locks */
    char tls_url[224]; /* the same with tls=yes and cacert */
    const char *args[MY_SERVER_ARGS]; /* further arguments, NULL at the end */
    struct st_mysql *admin;
};

SERVER_VERBS(my_server)
/* Returns 0, or -1 with a message on stderr. The caller sets tls, args, ...
 * first. */
int my_server_start(struct my_server *);
/* Stores the worker's URL at that port, with these options ("?a=b", or ""). */
void my_server_url_at(int port, const char *options, char *url, size_t size);

/*
 * The following functions run a statement as the administrator, in the database
 * of the locks. They fail the test if the server does not answer.
 */
/* Returns the error number of the statement, or 0. */
unsigned my_server_try(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails the test if the statement fails; returns the number of changed rows. */
long long my_server_do(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the first value of the result, or -1 if there is no value or the
 * table does not exist. */
long long my_server_number(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the first value as a string, valid until the next call, or "" if
 * there is none. */
const char *my_server_text(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Return the number of the worker's connections, and of those that wait for a
 * lock. */
long my_server_connections(struct my_server *);
long my_server_waiting(struct my_server *);
/* Returns the number of rows with a lease that has not ended, plus the number
 * of waiting connections; prints both if `print`. */
long my_server_left(struct my_server *, bool print);
/* Ends all holds, sets all latches to 0, and deletes the values and the records
 * of latch requests. The rows of the locks stay, because they hold the token
 * counters. */
void my_server_empty(struct my_server *);

#endif
