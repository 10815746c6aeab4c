/*
 * A diagnosis: INFO of every server, as findings (core->find). hf__rl_query()
 * is a slot of the backend's table; queries other than a diagnosis fail with
 * ENOTSUP.
 */
#ifndef HF_RL_DIAGNOSE_H
#define HF_RL_DIAGNOSE_H

#include "server.h"

int hf__rl_query(void *, struct hf__query *);

/* Notes that the reply to an INFO has arrived, or that none will arrive. Unless
 * the client is closing, the caller runs within ready() or advance(), and
 * hf__rl_checkup_move() is called after that. */
void hf__rl_checkup_drop(struct redlock *, struct rl_checkup *);
void hf__rl_checkups_fini(struct redlock *);
void hf__rl_checkup_move(struct redlock *, hf__time now);
hf__time hf__rl_checkup_timeout(const struct redlock *);

#endif
