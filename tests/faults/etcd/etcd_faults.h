/* Faults of one etcd server, which the cases of a group share. */
#ifndef ETCD_FAULTS_H
#define ETCD_FAULTS_H

#include "../../lib/etcd_server.h"
#include "../any/any_faults.h"

extern struct etcd_server etcd_one;

/* Runs etcdctl with these arguments and asserts that it succeeds. */
void ctl(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Copies the n-th oldest key below "n/"; returns false if there are fewer. */
bool entry(unsigned n, char *key, size_t size);
/* Waits until n entries exist. */
void has_entries(unsigned n);

#endif
