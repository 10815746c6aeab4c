/*
 * All servers of a client together: how many can be used, and what is wrong
 * with the others.
 */
#ifndef HF_RL_SERVERS_H
#define HF_RL_SERVERS_H

#include "hold.h"

/* A bit for each server that can be used. */
unsigned hf__rl_usable(const struct redlock *, hf__time now);

/* How many are connected. */
size_t hf__rl_connected(const struct redlock *);

bool hf__rl_has_majority(const struct redlock *, hf__time now);

void hf__rl_flush(struct redlock *);

/* What is wrong with each server, those with the same trouble together: with
 * its part in a poll, or, if there is none, with itself. */
void hf__rl_describe(const struct redlock *, const struct rl_poll *,
                     hf__time now, char *to, size_t size);

#endif
