/* Backends by the scheme of a URL: the built-in one, or a module. */
#ifndef HF_MODULE_H
#define HF_MODULE_H

#include "backends/backend.h"

int hf__backend_find(const char *scheme, const struct hf__backend **,
                     hf_error *);

#endif
