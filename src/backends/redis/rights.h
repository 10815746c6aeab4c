/*
 * The part of a diagnosis that finds which rights the user lacks, by a script
 * that the server runs without doing anything (lua/rights.lua).
 */
#ifndef HF_REDIS_RIGHTS_H
#define HF_REDIS_RIGHTS_H

#include "reply.h"

struct redis;

int hf__rd_rights_encode(struct redis *, struct hf__query *);
int hf__rd_rights_found(struct redis *, struct hf__query *,
                        const struct rd_node *);

#endif
