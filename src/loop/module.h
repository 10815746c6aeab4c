/* Finds the backend of a URL's scheme, and loads the backend's module unless
 * the backend is built in. Returns 0, or EINVAL or EBACKEND with a message. */
#ifndef HF_MODULE_H
#define HF_MODULE_H

#include "backends/backend.h"

int hf__backend_find(const char *scheme, const struct hf__backend **,
                     hf_error *);

#endif
