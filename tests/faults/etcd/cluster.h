/* Faults of a cluster of three etcds, and of one etcd that requires a user. */
#ifndef ETCD_CLUSTER_H
#define ETCD_CLUSTER_H

#include "../../lib/etcd_server.h"
#include "../any/any_faults.h"

#define PASSWORD "secret-of-worker"

extern struct etcd_cluster etcd_three;
/* The first member, run as a single server. Its user "worker" may use all keys
 * below p/. */
extern struct etcd_server *const etcd_locked;

/* Starts etcd_three for a group that uses the cluster. */
int cluster_start_three(void);

#endif
