/*
 * A stream of bytes to one address: TCP, with TLS if wanted, or Unix. It knows
 * nothing about what is said. Nothing blocks: connect() goes on in the
 * background, and what cannot be sent at once stays in the out buffer. A module
 * compiles these files into itself and calls them with the client's mutex held.
 *
 * A failure sets `broken`, and nothing is sent or read from then on. The
 * owner looks at it in advance(), closes the stream, and opens it again.
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
    char host[256]; /* whose it is: TLS verifies it */
    char where[80]; /* host:port or path, for texts */
};

/* What is to be sent. Its owner writes at data + len what it has reserved. */
struct net_out {
    char *data;
    size_t from, len, cap; /* [from, len) is still to be sent */
    bool secret;           /* holds a password: to be wiped once sent */
};

struct net_stream {
    const struct hf__core *core;
    hf_client *client;
    int fd;          /* -1: closed */
    uint32_t tag;    /* of this fd, for core->watch() */
    uint32_t events; /* that are watched for */
    int broken;      /* 0, or an errno; hf__net_why() has the text */
    bool closed;     /* broken: the server has closed the connection */
    bool more;       /* the last read may have left something */
    bool connecting;
    bool securing;   /* TLS begins when all that is written is sent */
    bool shaking;    /* connected; TLS' handshake is not over */
    int code;        /* broken: 0 for HF_EBACKEND, or HF_EAUTH, HF_EPROTO ... */
    char words[160]; /* broken: "" for strerror() */
    uint64_t written; /* bytes since it was opened */
    struct net_out out;
    struct net_tls
        *tls;           /* NULL: plain; set by the owner, before it is opened */
    bool tls_later;     /* the same: not before hf__net_secure() */
    struct ssl_st *ssl; /* of this fd */
    char host[256];     /* of its address */
};

void hf__net_init(struct net_stream *, const struct hf__core *, hf_client *);
/* It is closed. The tag is one that no descriptor had before. Opening and
 * going on, which ready() does until it is open: 0, HF__PENDING, or a code. */
int hf__net_open(struct net_stream *, const struct net_addr *, uint32_t tag);
int hf__net_go_on(struct net_stream *);
/* It is open, tls_later, and has been used in plain: what is still to be sent
 * goes out so, then TLS begins. As hf__net_open(). */
int hf__net_secure(struct net_stream *);
void hf__net_close(struct net_stream *); /* the out buffer is emptied, too */
void hf__net_fini(struct net_stream *);

/* Room for so many bytes more; 0, HF_ENOMEM. */
int hf__net_reserve(struct net_stream *, size_t more);
/* The same in any such buffer. It at least doubles, from first_cap on. */
int hf__net_grow(const struct hf__core *, hf_client *, struct net_out *,
                 size_t first_cap, size_t more);
/* Writes what can be written, and watches; nothing before it is open. */
void hf__net_flush(struct net_stream *);
/* How many bytes have come; 0: none now; a code. To be called again as long as
 * `more` is set. */
ssize_t hf__net_read(struct net_stream *, void *buf, size_t size);
/* The server has closed the connection. To be asked while nothing is expected
 * from the server. */
bool hf__net_is_over(struct net_stream *);
/* What is broken, for people. */
const char *hf__net_why(const struct net_stream *);

#endif
