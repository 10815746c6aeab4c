/*
 * Host names to addresses, see hf__core.lookup: where it may not block, on a
 * thread for which nobody waits.
 */
#ifndef HF_RESOLVE_H
#define HF_RESOLVE_H

#include "backends/backend.h"

struct hf__lookup *hf__lookup(const char *hosts, bool here);
bool hf__lookup_over(const struct hf__lookup *);
void hf__lookup_leave(struct hf__lookup *);

#endif
