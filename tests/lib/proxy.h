/*
 * A TCP proxy of our own, in a thread, between a client under test and its
 * server. Faults are switched on while it runs; they hold for connections that
 * exist and for new ones, until the next switch. A connection that has lost
 * bytes in one direction never carries any in it again: TCP leaves no gaps.
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include <stddef.h>
#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_SWALLOW,    /* what the server says goes nowhere */
    PROXY_DEAF,       /* what the client says goes nowhere */
    PROXY_BLACK_HOLE, /* both */
    PROXY_LOSS,       /* the packets of clients vanish: no TCP answers them */
    PROXY_DELAY,      /* what the server says comes `value` ms later */
    PROXY_RESET,      /* once: RST after `value` more bytes of the server */
    PROXY_HALF_CLOSE, /* once: FIN to the client after as many */
    PROXY_DRIP,       /* one byte of the server each `value` us */
    PROXY_REFUSE,     /* new connections are reset */
    /* What a ZooKeeper says of watches goes nowhere; answers are passed on. */
    PROXY_LOSE_EVENTS,
};

struct proxy;

/* To 127.0.0.1:port. NULL on failure. */
struct proxy *proxy_start(int port);
struct proxy *proxy_start_at(int host, int port); /* listens at 127.0.0.host */
int proxy_port(const struct proxy *);
/* In force when it returns. */
void proxy_set(struct proxy *, enum proxy_mode, long value);
/* What the servers say goes through that function, from the beginning of each
 * connection on. It may take something out, and returns how many bytes are to
 * be passed on; the rest comes again, with more behind it. */
typedef size_t proxy_censor(char *data, size_t *len);
void proxy_censors(struct proxy *, proxy_censor *);
/* Resets every connection there is, both sides. */
void proxy_cut(struct proxy *);
/* Only those that have been there for longest, so many of them. */
void proxy_cut_oldest(struct proxy *, unsigned many);
/* From now on a client that says this word, in one piece, loses its connection,
 * and the server does not hear it. NULL: none does. The word stays the
 * caller's. */
void proxy_cut_at(struct proxy *, const char *word);
/* From now on it is counted how often the server says something after a client
 * has said this word. */
void proxy_count(struct proxy *, const char *word);
uint64_t proxy_counted(struct proxy *);
/* How many connections there were. */
uint64_t proxy_connections(struct proxy *);
/* New connections go to that port; those that exist stay where they are. */
void proxy_lead_to(struct proxy *, int port);
/* Bytes of the clients that have gone to the server, all connections. */
uint64_t proxy_sent(struct proxy *);
/* What the clients of connections that exist now say is kept back, until it is
 * delivered: even if that client is gone by then. */
void proxy_hoard(struct proxy *);
uint64_t proxy_hoarded(struct proxy *); /* bytes */
void proxy_deliver(struct proxy *);
/* Bytes of the server that came (passed on or not). */
uint64_t proxy_answered(struct proxy *);
void proxy_end(struct proxy *);

#endif
