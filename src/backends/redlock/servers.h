/*
 * All servers of a client: how many can vote, and what is wrong with the
 * others.
 */
#ifndef HF_RL_SERVERS_H
#define HF_RL_SERVERS_H

#include "hold.h"

/* Returns a bit for each server that can vote. */
unsigned hf__rl_usable(const struct redlock *, hf__time now);

/* Returns how many servers are connected, whether or not they may vote. */
size_t hf__rl_connected(const struct redlock *);

/* True if as many servers can vote as a decision needs. */
bool hf__rl_has_majority(const struct redlock *, hf__time now);

/* Sends what was written to the connections. */
void hf__rl_flush(struct redlock *);

/* Writes what is wrong with the servers; those with the same trouble are listed
 * together. If a ballot is given, only what is wrong with its votes counts; if
 * it is NULL, the state of the servers. */
void hf__rl_describe(const struct redlock *, const struct rl_poll *,
                     hf__time now, char *to, size_t size);

#endif
