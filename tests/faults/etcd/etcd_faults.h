/* Faults of one etcd. The cases of a group share a server. */
#ifndef ETCD_FAULTS_H
#define ETCD_FAULTS_H

#include "../../lib/etcd_server.h"
#include "../any/any_faults.h"

extern struct etcd_server etcd_one;

/* etcdctl with these arguments, which does not fail. */
void ctl(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The n-th key below "n/", from the oldest on; false: there are not so many. */
bool entry(unsigned n, char *key, size_t size);
/* So many of them are there, or soon will be. */
void has_entries(unsigned n);

#endif
