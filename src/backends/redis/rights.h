/*
 * The part of a diagnosis that finds the rights that the user lacks, by a
 * script that changes nothing (lua/rights.lua). hf__rd_rights_encode() returns
 * 0 or HF_ENOMEM; hf__rd_rights_found() returns 0 or HF_EPROTO.
 */
#ifndef HF_REDIS_RIGHTS_H
#define HF_REDIS_RIGHTS_H

#include "reply.h"

struct redis;

int hf__rd_rights_encode(struct redis *, struct hf__query *);
int hf__rd_rights_found(struct redis *, struct hf__query *,
                        const struct rd_node *);

#endif
