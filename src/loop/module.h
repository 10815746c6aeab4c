/* Finds the backend of a URL by its scheme: the built-in one, or a module,
 * which is loaded. */
#ifndef HF_MODULE_H
#define HF_MODULE_H

#include "backends/backend.h"

int hf__backend_find(const char *scheme, const struct hf__backend **,
                     hf_error *);

#endif
