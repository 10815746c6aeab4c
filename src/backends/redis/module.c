/*
 * The entry of the module, which has two backends: that of one server, and
 * Redlock. No other file of this folder knows of Redlock.
 */
#include "backends/redlock/redlock.h"
#include "redis.h"

#include <string.h>

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    if (abi != HF__ABI)
        return NULL;
    return strcmp(scheme, "redlock") == 0 ? &hf__rl_backend : &hf__rd_backend;
}
