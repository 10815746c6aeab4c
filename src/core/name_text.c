#include "core/name_text.h"

#include "base/error.h"
#include "base/text.h"
#include "core/client.h"
#include "core/line.h"

#include <string.h>

const char *hf__kind_name(int kind)
{
    static const char *const names[] = {"?", "mutex", "read-write lock",
                                        "semaphore", "latch"};

    return names[kind >= HF_MUTEX && kind <= HF_LATCH ? kind : 0];
}

int hf__name_valid(const void *name, size_t *len, hf_error *err)
{
    if (!name)
        return hf__fail(err, HF_EINVAL, "the name is NULL");
    if (*len == HF_CSTRING)
        *len = strlen(name);
    if (*len == 0)
        return hf__fail(err, HF_EINVAL,
                        "the name is empty; it must have 1 to %d bytes",
                        HF_NAME_MAX);
    if (*len > HF_NAME_MAX)
        return hf__fail(err, HF_EINVAL,
                        "the name has %zu bytes; at most %d are allowed", *len,
                        HF_NAME_MAX);
    if (memchr(name, 0, *len))
        return hf__fail(err, HF_EINVAL,
                        "the name has a NUL in it; any other byte is allowed");
    return 0;
}

struct hf__shown hf__line_shown(struct hf__line *n)
{
    return hf__show(hf__line_first(n)->text + strlen(n->client->prefix));
}
