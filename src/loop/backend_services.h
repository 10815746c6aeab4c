/* The services of the core for backends: the table struct hf__core (backend.h).
 * A module may call nothing else. */
#ifndef HF_BACKEND_SERVICES_H
#define HF_BACKEND_SERVICES_H

#include "backends/backend.h"

extern const struct hf__core hf__core;

#endif
