/*
 * Those who listen to changes of a name, or of all names with a prefix: a watch
 * on all that is below. When the stream has ended the watch is made anew. When
 * it is confirmed, what happened meanwhile is reported as one change.
 */
#ifndef HF_ETCD_CHANGES_H
#define HF_ETCD_CHANGES_H

#include "backends/backend.h"

struct etcd;

int hf__et_listen(struct etcd *, struct hf__query *);
void hf__et_unlisten(void *, struct hf__listener *);
/* Makes the watches that are missing. */
void hf__et_changes_up(struct etcd *);
void hf__et_changes_down(struct etcd *);
void hf__et_changes_fini(struct etcd *);

#endif
