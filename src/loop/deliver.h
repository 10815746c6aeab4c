/*
 * Delivery: takes what the backend marked, and what the clock reached, to the
 * lines and requests concerned. Needs no role; two threads may deliver at once.
 * No mutex is held.
 */
#ifndef HF_DELIVER_H
#define HF_DELIVER_H

#include "backends/backend.h"

void hf__deliver(hf_client *, hf__time now);

#endif
