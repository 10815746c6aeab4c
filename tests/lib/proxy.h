/*
 * A TCP proxy in a thread, between a client under test and its server. Faults
 * are switched on while the proxy runs; each lasts until the next switch, and
 * applies to existing and new connections unless its comment below says
 * otherwise. A connection that has lost bytes in one direction carries no more
 * bytes in that direction, because TCP leaves no gaps. (PROXY_LOSE_EVENTS and a
 * censor remove whole messages, and the connection goes on.)
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include <stddef.h>
#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_SWALLOW,    /* drop what the server sends */
    PROXY_DEAF,       /* drop what the client sends */
    PROXY_BLACK_HOLE, /* drop what either side sends */
    PROXY_LOSS,       /* drop client packets without a TCP reply */
    PROXY_DELAY,      /* pass on the server's bytes `value` ms later */
    PROXY_RESET,      /* once: RST after `value` more server bytes */
    PROXY_HALF_CLOSE, /* once: FIN after `value` more server bytes */
    PROXY_DRIP,       /* pass on one server byte every `value` us */
    PROXY_REFUSE,     /* reset new connections */
    /* Drop ZooKeeper's watch events; pass on its replies. */
    PROXY_LOSE_EVENTS,
};

struct proxy;

/* Starts a proxy that connects its clients to 127.0.0.1:port. Returns NULL on
 * failure. */
struct proxy *proxy_start(int port);
struct proxy *proxy_start_at(int host, int port); /* listens at 127.0.0.host */
int proxy_port(const struct proxy *);
/* Switches the mode, which is in force when this returns. */
void proxy_set(struct proxy *, enum proxy_mode, long value);
/* Passes everything that the servers send through the given function. Each call
 * gets the bytes of one connection that have not been passed on yet. The
 * function may remove some of them, and returns how many of the rest to pass
 * on. The next call for the connection gets the bytes that were neither removed
 * nor passed on, followed by new bytes. */
typedef size_t proxy_censor(char *data, size_t *len);
void proxy_censors(struct proxy *, proxy_censor *);
/* Resets both sides of every existing connection. */
void proxy_cut(struct proxy *);
/* Resets only the `many` oldest connections. */
void proxy_cut_oldest(struct proxy *, unsigned many);
/* From now on, cuts the connection of a client that sends this word in one
 * piece; the server does not receive the word. NULL turns this off. The string
 * must outlive its use. */
void proxy_cut_at(struct proxy *, const char *word);
/* From now on, counts the replies to this word: how often the server sends
 * something after a client has sent the word. The string must outlive its
 * use. */
void proxy_count(struct proxy *, const char *word);
uint64_t proxy_counted(struct proxy *);
/* Returns the number of connections so far. */
uint64_t proxy_connections(struct proxy *);
/* Connects new clients to that port; existing connections stay. */
void proxy_lead_to(struct proxy *, int port);
/* Returns the number of bytes sent to the server, on all connections. */
uint64_t proxy_sent(struct proxy *);
/* From now on, holds back what the clients of the existing connections send.
 * proxy_deliver() passes these bytes on, even if the client has closed its
 * connection by then. */
void proxy_hoard(struct proxy *);
uint64_t proxy_hoarded(struct proxy *); /* bytes */
void proxy_deliver(struct proxy *);
/* Returns the number of bytes received from the server, passed on or not. */
uint64_t proxy_answered(struct proxy *);
void proxy_end(struct proxy *);

#endif
