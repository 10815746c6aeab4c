/*
 * All servers of a client: how many can vote, and why the others cannot vote.
 */
#ifndef HF_RL_SERVERS_H
#define HF_RL_SERVERS_H

#include "hold.h"

/* Returns a set with a bit for each server that can vote. */
unsigned hf__rl_usable(const struct redlock *, hf__time now);

/* Returns how many servers are connected, whether or not they can vote. */
size_t hf__rl_connected(const struct redlock *);

/* Returns whether a majority of the servers can vote. */
bool hf__rl_has_majority(const struct redlock *, hf__time now);

/* Sends the commands that are in the send buffers. */
void hf__rl_flush(struct redlock *);

/* Writes what is wrong with the servers; servers with the same problem are
 * listed together. If a ballot is given, the list contains the servers that
 * failed to vote in it; if it is NULL, all servers that cannot vote now. */
void hf__rl_describe(const struct redlock *, const struct rl_poll *,
                     hf__time now, char *to, size_t size);

#endif
