/* A module that claims another version of holdfast. */
#include "backends/backend.h"

const struct hf__backend *hf_module(uint32_t abi, const char *scheme)
{
    static struct hf__backend other = {.name = "other"};

    (void)scheme;
    other.abi = abi + 1;
    return &other;
}
