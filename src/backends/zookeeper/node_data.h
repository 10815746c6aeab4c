/*
 * The data of our nodes: an entry describes its owner, `leases` and `latch`
 * describe their lock, and a word asks a holder to hand over. Pure, except for
 * the clock.
 */
#ifndef HF_ZK_NODE_DATA_H
#define HF_ZK_NODE_DATA_H

#include "node.h"

#define ZK_ABOUT_MAX 512 /* bytes of the description of an owner */

#define ZK_REVOKE "__REVOKE__"
#define ZK_PERMITS "holdfast permits " /* data of leases: a prefix */
#define ZK_COUNT_MAX 96                /* bytes of the data of latch */
#define ZK_COUNT "holdfast latch "     /* data of latch: a prefix */

/* Writes the description of the node's owner, for inspections; returns the
 * length. */
int hf__zk_node_describe(const struct zk_node *, char data[ZK_ABOUT_MAX]);

/* Does the data begin with the word that asks the holder to hand over? */
bool hf__zk_is_revoke(const char *data, int len);

/* The size of a semaphore; 0: the data has none. */
uint32_t hf__zk_permits_parse(const char *data, int len);
/* Reads the count and the round; false: not written by holdfast. */
bool hf__zk_count_parse(const char *data, int len, uint64_t *count,
                        char round[ZK_UUID_MAX]);

#endif
