/*
 * Certificates for a test, made in its directory, as PEM: NAME.pem, and
 * its key NAME.key. All but the first and the last are signed by `ca`.
 *
 *   ca         a CA
 *   server     for localhost and 127.0.0.1
 *   client     of a client
 *   elsewhere  for elsewhere.example
 *   expired    like server; it has expired
 *   stranger   for localhost and 127.0.0.1, signed by itself
 */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

/* 0, or -1 with a text on stderr. */
int certs_make(const char *dir);

#endif
