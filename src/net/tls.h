/*
 * TLS for a stream, by OpenSSL. The server's certificate is always verified:
 * by the CAs of a file or of the system, and against the name or address of the
 * host that is connected to. TLS 1.2 or later. The files are read once, here.
 */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "stream.h"

/* What the connections of a client have in common. */
struct net_tls;

/* Each may be NULL: the system's CAs; no certificate of our own; no protocol is
 * agreed on. */
struct net_tls_files {
    const char *cacert, *cert, *key;
    const char *alpn; /* "h2": a server that does not agree is not used; a
                         constant */
};

/* 0 and *out; HF_EINVAL, whose text is set; HF_ENOMEM. */
int hf__tls_new(const struct hf__core *, hf_client *,
                const struct net_tls_files *, struct net_tls **out);
void hf__tls_free(struct net_tls *); /* NULL is fine */

/* The rest is for stream.c. These return what those of stream.h do, and set
 * broken; a failure that TLS explains sets code and words, too. */
int hf__tls_begin(struct net_stream *);
int hf__tls_shake(struct net_stream *); /* HF__PENDING: see wants_out() */
bool hf__tls_wants_out(const struct net_stream *);
ssize_t hf__tls_write(struct net_stream *, const void *, size_t);
ssize_t hf__tls_read(struct net_stream *, void *, size_t);
bool hf__tls_is_over(struct net_stream *);
void hf__tls_end(struct net_stream *);

#endif
