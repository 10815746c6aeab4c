/*
 * The library's socket, as the core watches it. The library owns its descriptor
 * and may close it at any time. A forked child may keep the socket open, and
 * then epoll(7) would report the closed descriptor for ever. So the core
 * watches a duplicate (zk.own_fd). The backend closes the duplicate only after
 * it has stopped watching it. Called by session.c, and by call.c after each
 * request, with the client's mutex held.
 */
#ifndef HF_ZK_SOCKET_H
#define HF_ZK_SOCKET_H

#include "zookeeper.h"

/* Stops watching the descriptor, because the library has closed it. */
void hf__zk_socket_gone(struct zk *);
/* Notes events of the descriptor with that tag. */
void hf__zk_socket_ready(struct zk *, uint32_t tag, uint32_t events);
/* Polls a descriptor that the core could not watch. */
void hf__zk_socket_poll(struct zk *);
/* Watches this descriptor of the library for these events. */
void hf__zk_socket_watch(struct zk *, int fd, int interest);
/* Lets the library write a request that was just sent, unless advance() is
 * running, which does that anyway. */
void hf__zk_socket_sent(struct zk *);

#endif
