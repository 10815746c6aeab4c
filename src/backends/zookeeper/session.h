/*
 * The session, from creation to end. This unit drives the library, and notifies
 * the other units when the connection is established or lost and when the
 * session has ended. Called by zookeeper.c. hf__zk_session_open() and
 * hf__zk_session_close() run on the helper thread without the client's mutex.
 * hf__zk_session_move() and hf__zk_session_timeout() are the backend's advance
 * and next_timeout.
 *
 * A session is one handle of the library. The library reconnects by itself and
 * keeps the session as long as the server does. When the server has ended the
 * session, the handle is useless and a new one is created. The library never
 * ends a session by itself, however long the servers are silent. In the
 * meantime the core ends the holds at their deadlines.
 */
#ifndef HF_ZK_SESSION_H
#define HF_ZK_SESSION_H

#include "zookeeper.h"

/* Looks up the hosts and starts to connect. Returns 0, or an error code. */
int hf__zk_session_open(struct zk *);
void hf__zk_session_close(struct zk *);
void hf__zk_session_move(void *, hf__time now);
hf__time hf__zk_session_timeout(void *);

#endif
