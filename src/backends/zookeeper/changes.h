/*
 * Changes of a name, for programs that listen to it (HF__LISTEN, unlisten).
 * session.c calls move and lost. The memory is this file's until the session is
 * over, even if nobody listens any more. With the client's mutex held.
 */
#ifndef HF_ZK_CHANGES_H
#define HF_ZK_CHANGES_H

#include "zookeeper.h"

int hf__zk_changes_listen(struct zk *, struct hf__query *);
void hf__zk_changes_unlisten(void *self, struct hf__listener *);
/* Sets the watches that are due; all, if it was down. */
void hf__zk_changes_move(struct zk *);
/* The session is over. */
void hf__zk_changes_lost(struct zk *);

#endif
