/* A module of another version of holdfast. */
#include "backend.h"

__attribute__((visibility("default"))) const struct hf__backend *
hf_module(uint32_t abi);

const struct hf__backend *hf_module(uint32_t abi)
{
    static struct hf__backend other = {.name = "other"};

    other.abi = abi + 1;
    return &other;
}
