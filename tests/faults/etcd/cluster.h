/* Faults of a cluster of three etcds, and of one that wants a user. */
#ifndef ETCD_CLUSTER_H
#define ETCD_CLUSTER_H

#include "../../lib/etcd_server.h"
#include "../any/any_faults.h"

#define PASSWORD "secret-of-worker"

extern struct etcd_cluster etcd_three;
/* The first of them, alone: all below p/ is the worker's. */
extern struct etcd_server *const etcd_locked;

int group_three(void **state);
int group_locked(void **state);
int group_end(void **state);
/* Of etcd_three: the proxy is before one that follows. */
int setup(void **state);

int run_cluster_faults(void);
int run_auth_faults(void);
int run_tls_faults(void);

#endif
