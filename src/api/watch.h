/* The callbacks of watches. */
#ifndef HF_WATCH_H
#define HF_WATCH_H

#include <holdfast.h>

/* The callbacks of those that have changed: how many were called, or EFORK. */
int hf__watch_call_all(hf_client *);

#endif
