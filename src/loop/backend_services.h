/* What the core lends to backends: the table struct hf__core (backend.h), which
 * is all that a module may call. */
#ifndef HF_BACKEND_SERVICES_H
#define HF_BACKEND_SERVICES_H

#include "backends/backend.h"

extern const struct hf__core hf__core;

#endif
