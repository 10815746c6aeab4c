/*
 * The login, from the server's greeting to its OK: version, TLS, user name and
 * password. conn.c passes each packet to this file until the login is complete.
 *
 * The user name, the password and the TLS context belong to the client (struct
 * mysql); a connection only refers to them. The password is written only to
 * stream.out, which is then marked as secret and wiped. It is sent in clear
 * text only over TLS or a Unix socket, and no error message contains it. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_LOGIN_H
#define HF_MYSQL_LOGIN_H

#include "backends/backend.h"

struct my_conn;
struct my_packet;
struct net_tls;

/* Common to all connections of a client. */
struct my_login {
    char *user, *password, *database; /* "" if none */
    struct net_tls *tls;              /* NULL without TLS */
};

/* Handles a packet of the server. Returns 1 if the client is logged in, 0 if
 * more packets follow, or a code, as data() does (link.h). */
int hf__my_login_packet(struct my_conn *, struct my_packet *, hf__time now);
/* Sends the login packet: after the greeting or, with TLS, when the handshake
 * is complete. Returns 0 or HF_ENOMEM. */
int hf__my_login_send(struct my_conn *);
/* Sets the message of a permanent failure: the server is too old. Returns the
 * code. */
int hf__my_too_old(struct my_conn *, hf__time now);
/* Returns whether the error says that the server ends the connection. */
bool hf__my_error_ends(uint16_t error);

/* Writes the scramble of caching_sha2_password or, if `is_sha2` is false, that
 * of mysql_native_password. *len becomes the length of the scramble, at most
 * 32. Returns false if OpenSSL has failed. Declared here for tests. */
bool hf__my_scramble(bool is_sha2, const char *password,
                     const unsigned char salt[20], unsigned char to[32],
                     size_t *len);

#endif
