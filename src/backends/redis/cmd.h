/*
 * The owner of the command connection (redis.cmd): finds the unit that an
 * answer is for, says what an error means, and what becomes of the commands
 * under way when the connection comes or goes.
 */
#ifndef HF_REDIS_CMD_H
#define HF_REDIS_CMD_H

#include "flights.h"

/* The owner of r->cmd. */
extern const struct rd_owner hf__rd_cmd;

/* What was in doubt is decided (replica.h): 0, or a code. */
void hf__rd_decided(struct redis *, const struct rd_flight *, int code,
                    hf__time now);

#endif
