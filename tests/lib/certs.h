/*
 * Makes certificates for a test in its directory, as PEM: NAME.pem and its key
 * NAME.key. All but the first and the last are signed by `ca`.
 *
 *   ca         a CA
 *   server     for localhost and 127.0.0.1
 *   client     for a client
 *   elsewhere  for elsewhere.example
 *   expired    like server, but expired
 *   stranger   for localhost and 127.0.0.1, self-signed
 */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

/* Returns 0, or -1 with a message on stderr. */
int certs_make(const char *dir);

#endif
