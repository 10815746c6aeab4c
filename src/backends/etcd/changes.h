/*
 * Listeners: a watch on all keys of a name, or of all names with a prefix. When
 * the stream of watches has ended, the watch is created again. Once the server
 * confirms the new watch, one change is reported for everything that was
 * missed.
 */
#ifndef HF_ETCD_CHANGES_H
#define HF_ETCD_CHANGES_H

#include "backends/backend.h"

struct etcd;

int hf__et_listen(struct etcd *, struct hf__query *);
void hf__et_unlisten(void *, struct hf__listener *);
/* Creates the watches that are missing. Must be called when the connection is
 * up. */
void hf__et_changes_up(struct etcd *);
void hf__et_changes_down(struct etcd *);
void hf__et_changes_fini(struct etcd *);

#endif
