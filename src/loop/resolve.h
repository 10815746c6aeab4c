/*
 * Looks up the addresses of host names, for hf__core.lookup: on the calling
 * thread if that thread may block (the argument `here`), otherwise on a thread
 * that no thread waits for.
 */
#ifndef HF_RESOLVE_H
#define HF_RESOLVE_H

#include "backends/backend.h"

struct hf__lookup *hf__lookup(const char *hosts, bool here);
bool hf__lookup_over(const struct hf__lookup *);
void hf__lookup_leave(struct hf__lookup *);

#endif
