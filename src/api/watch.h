/* The callbacks of watches. */
#ifndef HF_WATCH_H
#define HF_WATCH_H

#include <holdfast.h>

/* Calls the callbacks of all watches that have changed. Returns how many it has
 * called, or EFORK. */
int hf__watch_call_all(hf_client *);

#endif
