/*
 * The callbacks of the command connection (redis.cmd): they pass each reply to
 * the file that handles it, convert error replies into results, and decide what
 * happens to the commands in flight when the connection is lost. All functions
 * are called with the client's mutex held.
 */
#ifndef HF_REDIS_CMD_H
#define HF_REDIS_CMD_H

#include "flights.h"

/* The pipe callbacks of r->cmd. */
extern const struct rd_owner hf__rd_cmd;

/* Finishes a grant or a renewal that was in doubt (replica.h). `code` is 0 if
 * enough replicas have confirmed it, otherwise the error code of the
 * request. */
void hf__rd_decided(struct redis *, const struct rd_flight *, int code,
                    hf__time now);

#endif
