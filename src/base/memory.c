#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void *hf__alloc_by(const hf_hooks *hooks, size_t size)
{
    void *p;

    if (!hooks->alloc)
        return calloc(1, size);
    p = hooks->alloc(hooks->ctx, size);
    return p ? memset(p, 0, size) : NULL;
}

void hf__free_by(const hf_hooks *hooks, void *p)
{
    if (!p)
        return;
    if (hooks->free)
        hooks->free(hooks->ctx, p);
    else
        free(p);
}
