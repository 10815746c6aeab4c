/*
 * TLS for a stream, by OpenSSL: TLS 1.2 or later. The server's certificate is
 * always verified: by the CAs of a file or of the system, and against the host
 * name or address of the connection. No function but hf__tls_new() reads the
 * files of struct net_tls_files.
 */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "stream.h"

/* What all connections of a client share. */
struct net_tls;

/* Each member may be NULL. Without cacert, the CAs of the system are used;
 * without cert and key, no client certificate; without alpn, no ALPN. */
struct net_tls_files {
    const char *cacert, *cert, *key;
    const char
        *alpn; /* a constant, such as "h2", to which the server must agree */
};

/* Creates *out. Returns 0, HF_EINVAL with the message set, or HF_ENOMEM. */
int hf__tls_new(const struct hf__core *, hf_client *,
                const struct net_tls_files *, struct net_tls **out);
void hf__tls_free(struct net_tls *); /* NULL is allowed */

/* The rest is for stream.c. These functions return what the corresponding
 * functions of stream.h return. A failure sets `broken`; a failure of TLS also
 * sets `code` and `words`. */
int hf__tls_begin(struct net_stream *);
int hf__tls_shake(
    struct net_stream *); /* HF__PENDING means: call again when the socket can
                             be written (if wants_out()) or can be read
                             (otherwise) */
bool hf__tls_wants_out(const struct net_stream *);
ssize_t hf__tls_write(struct net_stream *, const void *, size_t);
ssize_t hf__tls_read(struct net_stream *, void *, size_t);
bool hf__tls_is_over(struct net_stream *);
void hf__tls_end(struct net_stream *);

#endif
