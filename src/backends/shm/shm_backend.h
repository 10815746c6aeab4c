/*
 * The table of the backend for shm: URLs. This is the only backend that is
 * linked into the library; loop/module.c takes the table from here.
 */
#ifndef HF_SHM_SHM_BACKEND_H
#define HF_SHM_SHM_BACKEND_H

#include "backends/backend.h"

extern const struct hf__backend hf__shm_backend;

#endif
