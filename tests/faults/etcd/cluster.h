/* Faults of a cluster of three etcds, and of one that wants a user. */
#ifndef ETCD_CLUSTER_H
#define ETCD_CLUSTER_H

#include "../../lib/etcd_server.h"
#include "../any/any_faults.h"

#define PASSWORD "secret-of-worker"

extern struct etcd_cluster etcd_three;
/* The first of them, as a single server: all below p/ belongs to the worker. */
extern struct etcd_server *const etcd_locked;

/* Starts etcd_three, for a group whose server that is. */
int cluster_start_three(void);

#endif
