/*
 * The connection. This unit opens it with the greeting (session.c), reads the
 * answers to keep-alives, and notifies the other units when the connection is
 * up and when it has ended. Only etcd.c calls this unit. The units below it
 * report through fields of struct etcd and through the codes that they return,
 * and never call it.
 */
#ifndef HF_ETCD_SESSION_H
#define HF_ETCD_SESSION_H

#include "backends/backend.h"

struct etcd;

/* Prepares the connection and its calls; sends nothing. Returns 0 or HF_ENOMEM;
 * hf__et_session_fini() must be called in either case. */
int hf__et_session_init(struct etcd *);
/* Frees the connection and its calls; sends nothing. */
void hf__et_session_fini(struct etcd *);
/* Revokes the lease and waits briefly for the answer. */
void hf__et_session_close(struct etcd *);
void hf__et_session_move(struct etcd *, hf__time now);

#endif
