/*
 * The table of the backend for shm: URLs. It is the one backend that is linked
 * into the library: loop/module.c takes it from here.
 */
#ifndef HF_SHM_SHM_BACKEND_H
#define HF_SHM_SHM_BACKEND_H

#include "backends/backend.h"

extern const struct hf__backend hf__shm_backend;

#endif
