/*
 * The connection and its greeting, and what happens to a client with it: up,
 * down, the answers to keep-alives. It is the top of the folder but for etcd.c:
 * the files below report to it through etcd's fields and codes, and never call
 * it.
 */
#ifndef HF_ETCD_SESSION_H
#define HF_ETCD_SESSION_H

#include "backends/backend.h"

struct etcd;

int hf__et_session_init(struct etcd *);
void hf__et_session_fini(struct etcd *);
/* Revokes the lease, and waits for the answer for a moment. */
void hf__et_session_close(struct etcd *);
void hf__et_session_move(struct etcd *, hf__time now);

#endif
