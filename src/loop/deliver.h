/*
 * Delivery: gives the marks that the backend has left, and the timers that are
 * due, to their lines and requests. Any thread that holds no mutex may deliver,
 * even two threads at once.
 */
#ifndef HF_DELIVER_H
#define HF_DELIVER_H

#include "backends/backend.h"

void hf__deliver(hf_client *, hf__time now);

#endif
