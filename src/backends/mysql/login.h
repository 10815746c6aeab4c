/*
 * The login, from the server's greeting to its OK: version, TLS, user name and
 * password. conn.c hands it each packet until it says that the client is in.
 *
 * The user name, the password and the TLS context belong to the client
 * (struct mysql); a connection only refers to them. A password is written to
 * stream.out alone, which is marked as secret and wiped. It goes out in clear
 * text only over TLS or the server's socket, and no error text quotes it. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_LOGIN_H
#define HF_MYSQL_LOGIN_H

#include "backends/backend.h"

struct my_conn;
struct my_packet;
struct net_tls;

/* What is the same for all connections of a client. */
struct my_login {
    char *user, *password, *database; /* "" if none */
    struct net_tls *tls;              /* NULL: plain */
};

/* A packet of the server before we are in: 1: we are; 0; or a code, as
 * that of data() (link.h). */
int hf__my_login_packet(struct my_conn *, struct my_packet *, hf__time now);
/* TLS is agreed on; as above without 1. */
int hf__my_login_secured(struct my_conn *);
/* Leaves the text that the server is too old, which lasts; returns the code. */
int hf__my_too_old(struct my_conn *, hf__time now);
/* It ends connections, this one as well. */
bool hf__my_error_ends(uint16_t error);

/* For the tests: *len bytes, at most 32. false: OpenSSL has failed. */
bool hf__my_scramble_native(const char *password, const unsigned char salt[20],
                            unsigned char to[32], size_t *len);
bool hf__my_scramble_sha2(const char *password, const unsigned char salt[20],
                          unsigned char to[32], size_t *len);

#endif
