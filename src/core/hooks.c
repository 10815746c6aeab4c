#include "core/hooks.h"

#include "base/memory.h"
#include "base/text.h"
#include "core/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *hf__alloc(hf_client *c, size_t size)
{
    return hf__alloc_by(&c->hooks, size);
}

void hf__free(hf_client *c, void *p)
{
    hf__free_by(&c->hooks, p);
}

char *hf__strdup(hf_client *c, const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = hf__alloc(c, size);

    return copy ? memcpy(copy, s, size) : NULL;
}

void hf__log(hf_client *c, const char *fmt, ...)
{
    char text[800];
    va_list ap;

    if (!c->hooks.log)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    hf__printable(text, sizeof(text));
    c->hooks.log(c->hooks.ctx, text);
}
