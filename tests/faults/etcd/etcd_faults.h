/* Faults of one etcd. The cases of a group share a server. */
#ifndef ETCD_FAULTS_H
#define ETCD_FAULTS_H

#include "../../lib/etcd_server.h"
#include "../any/any_faults.h"

extern struct etcd_server etcd_one;

int etcd_group(void **state);
int etcd_group_end(void **state);
int etcd_setup(void **state);

/* etcdctl with these arguments, which does not fail. */
void ctl(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The n-th key below "n/", from the oldest on; false: there are not so many. */
bool entry(unsigned n, char *key, size_t size);
/* So many of them are there, or soon will be. */
void has_entries(unsigned n);

int run_lease_faults(void);
int run_net_faults(void);
int run_stranger_faults(void);
int run_hostile_faults(void);
int run_watch_faults(void);

#endif
