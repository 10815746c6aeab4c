/*
 * The library's socket, as the core watches it. The library owns its descriptor
 * and closes it when it likes, so the core gets a duplicate (zk.own_fd), which
 * is ours. Called by session.c, and by call.c after each request; with the
 * client's mutex held.
 */
#ifndef HF_ZK_SOCKET_H
#define HF_ZK_SOCKET_H

#include "zookeeper.h"

/* The library has closed the one it had. */
void hf__zk_socket_gone(struct zk *);
/* What has come for it. */
void hf__zk_socket_ready(struct zk *, uint32_t tag, uint32_t events);
/* No event comes for a descriptor that could not be watched: it is polled. */
void hf__zk_socket_poll(struct zk *);
/* It is this one, and the library waits for that. */
void hf__zk_socket_watch(struct zk *, int fd, int interest);
/* After something was sent: outside of advance() the library is made to write
 * it. */
void hf__zk_socket_sent(struct zk *);

#endif
