/*
 * Creates certificates for a test in a directory, in PEM format: NAME.pem and
 * its key NAME.key. `ca` and `stranger` are self-signed, the others are signed
 * by `ca`.
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
