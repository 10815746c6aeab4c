/*
 * The data of our nodes: what an entry says of its owner, what `leases` and
 * `latch` say of their lock, and the word that asks a holder to hand over.
 * Nothing is sent here. Called by who writes such data, and by who inspects it.
 */
#ifndef HF_ZK_NODE_DATA_H
#define HF_ZK_NODE_DATA_H

#include "node.h"

#define ZK_ABOUT_MAX 512 /* bytes of what an entry says of its owner */

#define ZK_REVOKE "__REVOKE__"
#define ZK_PERMITS "holdfast permits " /* data of leases: and how many */
#define ZK_COUNT_MAX 96                /* of the data of latch */
#define ZK_COUNT "holdfast latch "     /* of latch: the count, the round */

/* What it says of its owner, for those who inspect it; the length. */
int hf__zk_node_describe(const struct zk_node *, char data[ZK_ABOUT_MAX]);

/* Does it begin with the word that asks for the lock? */
bool hf__zk_is_revoke(const char *data, int len);

/* 0: it does not say. */
uint32_t hf__zk_permits_parse(const char *data, int len);
/* What is left and which round it is; false: not one of ours. */
bool hf__zk_count_parse(const char *data, int len, uint64_t *count,
                        char round[ZK_UUID_MAX]);

#endif
