/*
 * The entry point of the module redis, which has two backends: one server, and
 * Redlock. This file is in the folder redlock because redlock may use redis,
 * but not the other way round.
 */
#include "backends/redis/redis.h"
#include "redlock.h"

#include <string.h>

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    if (abi != HF__ABI)
        return NULL;
    return strcmp(scheme, "redlock") == 0 ? &hf__rl_backend : &hf__rd_backend;
}
