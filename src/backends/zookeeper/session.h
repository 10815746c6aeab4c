/*
 * The session, from its making to its end: it drives the library, and tells all
 * others when the connection is there, is lost, or the session is over. Called
 * by zookeeper.c: open and close on the helper thread, without the client's
 * mutex; move and timeout are the backend's advance and next_timeout.
 */
#ifndef HF_ZK_SESSION_H
#define HF_ZK_SESSION_H

#include "zookeeper.h"

int hf__zk_session_open(struct zk *);
void hf__zk_session_close(struct zk *);
void hf__zk_session_move(void *, hf__time now);
hf__time hf__zk_session_timeout(void *);

#endif
