/*
 * Clients and locks of holdfast, for the runner and the processes that it
 * forks. Every function dies if it fails.
 */
#ifndef HF_LAB_CLIENT_H
#define HF_LAB_CLIENT_H

#include "../runner/place.h"

#include <holdfast.h>

struct lab;

/* Calls hf_open(). ttl_ms 0 means the default. A client belongs to one process,
 * so each actor or worker opens its own. */
hf_client *lab_open(const struct lab_place *place, int64_t ttl_ms);
/* Calls hf_lock_new() for a lock of that client. opt may be NULL. */
hf_lock *lab_lock(hf_client *client, const char *name,
                  const hf_lock_options *opt);
/* Opens a client for a moment, and returns its hf_client_caps() for this kind:
 * 0 if the backend does not have the kind. */
int lab_caps(const struct lab_place *place, enum hf_kind kind);
/* Dies unless rc is HF_OK. `what' names the attempt in the message, such as
 * "acquire". */
void lab_check(int rc, const char *what, const hf_error *err);

/* Warms up a temporary ZooKeeper before its speed is measured. Does nothing for
 * other places. */
void lab_warm(struct lab *lab, const struct lab_place *place);

#endif
