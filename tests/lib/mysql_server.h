/*
 * A real mariadbd for a test, or the MariaDB or MySQL in the directory that
 * TEST_MYSQL names: on a free loopback port and a Unix socket, with its data in
 * memory, in its own directory. It dies with the thread that started it. It is
 * ready when it answers a statement, never after a sleep.
 *
 * It has the database `locks` and the user `worker` with a password, who may
 * read, write and make tables there. root is the administrator, over the socket
 * and without a password.
 */
#ifndef TESTS_MYSQL_SERVER_H
#define TESTS_MYSQL_SERVER_H

#include "server_process.h"

#define MY_SERVER_ARGS 8
#define MY_SERVER_USER "worker"
#define MY_SERVER_SECRET "Geheimnis-7391"
#define MY_SERVER_DB "locks"
/* The rights that a user needs on each table if the tables exist. */
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
/* Returns 0, or -1 with a message on stderr. The caller sets tls and args
 * before. */
int my_server_start(struct my_server *);
/* The worker's URL at that port, with these options ("?a=b", or ""). */
void my_server_url_at(int port, const char *options, char *url, size_t size);

/*
 * The administrator runs a statement in the database of the locks. These
 * functions fail the test if the server does not answer.
 */
/* Returns the error number, or 0. */
unsigned my_server_try(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails the test on an error; returns the number of changed rows. */
long long my_server_do(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The first value of the result, or -1 if there is no row or no such table. */
long long my_server_number(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The first value as a text, "" if there is none. Valid until the next call. */
const char *my_server_text(struct my_server *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The number of the worker's connections; how many of them wait for a lock. */
long my_server_connections(struct my_server *);
long my_server_waiting(struct my_server *);
/* The number of rows of holds that have not ended, plus the number of waiting
 * connections; prints them if `print`. */
long my_server_left(struct my_server *, bool print);
/* Deletes all data of holdfast except the tokens. */
void my_server_empty(struct my_server *);

#endif
