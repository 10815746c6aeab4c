/*
 * Delivery: gives the marks that the backend has left, and the timers that are
 * due, to their lines and requests. Any thread may deliver, even two at once.
 * No mutex is held.
 */
#ifndef HF_DELIVER_H
#define HF_DELIVER_H

#include "backends/backend.h"

void hf__deliver(hf_client *, hf__time now);

#endif
