/*
 * A stream of bytes to one address: TCP, with or without TLS, or a Unix socket.
 * Nothing blocks: connect() continues in the background, and bytes that cannot
 * be sent at once stay in the out buffer. Each module contains its own copy of
 * this code and calls it with the client's mutex held.
 *
 * A failure sets `broken`; from then on nothing is sent. The owner (link.h)
 * handles the failure in hf__link_advance(): it closes the stream, and opens
 * the stream again later.
 */
#ifndef HF_NET_STREAM_H
#define HF_NET_STREAM_H

#include "backends/backend.h"

#include <sys/socket.h>
#include <sys/types.h>

struct net_tls;
struct ssl_st;

struct net_addr {
    int family;
    socklen_t len;
    struct sockaddr_storage sa;
    char host[256]; /* the host name, which TLS verifies */
    char where[80]; /* host:port or path, for error messages */
};

/* A buffer. After reserving room, the owner of the buffer writes at data + len
 * and adds to len. */
struct net_out {
    char *data;
    size_t from, len, cap; /* [from, len) is in use */
    bool secret;           /* contains a password; wiped once sent */
};

struct net_stream {
    const struct hf__core *core;
    hf_client *client;
    int fd;          /* -1 if closed */
    uint32_t tag;    /* identifies this fd in core->watch() */
    uint32_t events; /* passed to core->watch() */
    int broken;      /* 0, or an errno; hf__net_why() returns the message */
    bool closed;     /* broken because the server closed the connection */
    bool more;       /* the last read may have left bytes */
    bool connecting;
    bool securing;   /* TLS begins once the out buffer is empty */
    bool shaking;    /* the TLS handshake is in progress */
    int code;        /* if broken: HF_EAUTH, HF_EPROTO ...; 0 for HF_EBACKEND */
    char words[160]; /* if broken: the message, or "" to use strerror() */
    uint64_t written; /* bytes sent since the stream was opened */
    struct net_out out;
    struct net_tls *tls; /* NULL without TLS; set by the owner before opening */
    bool tls_later; /* TLS begins only with hf__net_secure(); set by the owner
                       before opening */
    struct ssl_st *ssl; /* NULL while there is no TLS on this fd */
    char host[256];     /* the host name of the address, which TLS verifies */
};

void hf__net_init(struct net_stream *, const struct hf__core *, hf_client *);
/* Opens a closed stream; the tag must be new. Returns 0 if the stream is open,
 * HF__PENDING, or an error code. */
int hf__net_open(struct net_stream *, const struct net_addr *, uint32_t tag);
/* Must be called when the descriptor is ready and hf__net_open() or
 * hf__net_secure() has returned HF__PENDING. Returns what hf__net_open()
 * returns. */
int hf__net_go_on(struct net_stream *);
/* Begins TLS on an open stream with tls_later, after the out buffer was sent
 * unencrypted. Returns what hf__net_open() returns. */
int hf__net_secure(struct net_stream *);
void hf__net_close(struct net_stream *); /* also empties the out buffer */
void hf__net_fini(struct net_stream *);

/* Makes room for that many more bytes in the out buffer. Returns 0 or
 * HF_ENOMEM. */
int hf__net_reserve(struct net_stream *, size_t more);
/* Makes room in any buffer. Its capacity starts at first_cap and is doubled as
 * needed. Returns 0 or HF_ENOMEM. */
int hf__net_grow(const struct hf__core *, hf_client *, struct net_out *,
                 size_t first_cap, size_t more);
/* Sends what can be sent, and watches the descriptor. Has no effect until the
 * stream is open. */
void hf__net_flush(struct net_stream *);
/* Returns the number of bytes read, 0 if there are none now, or an error code.
 * Must be called again while `more` is set. */
ssize_t hf__net_read(struct net_stream *, void *buf, size_t size);
/* Returns whether the server has closed the connection. Only for a stream on
 * which no answer is due. */
bool hf__net_is_over(struct net_stream *);
/* Returns the message of the failure that set `broken`. */
const char *hf__net_why(const struct net_stream *);

#endif
