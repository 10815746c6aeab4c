/*
 * The owner of the command connection (redis.cmd): it passes each answer to the
 * file that handles it, gives an error its meaning, and decides what happens to
 * the commands in flight when the connection is lost. The client's mutex is
 * held.
 */
#ifndef HF_REDIS_CMD_H
#define HF_REDIS_CMD_H

#include "flights.h"

/* The owner of r->cmd. */
extern const struct rd_owner hf__rd_cmd;

/* Reports a grant or a renewal that was in doubt (replica.h). code: 0 if enough
 * replicas have confirmed it. */
void hf__rd_decided(struct redis *, const struct rd_flight *, int code,
                    hf__time now);

#endif
