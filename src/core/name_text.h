/* Names of locks: which are valid, and how they and their kinds are shown to
 * people. */
#ifndef HF_NAME_TEXT_H
#define HF_NAME_TEXT_H

#include "base/text.h"
#include "core/line.h"

/* Checks a name. If *len is HF_CSTRING, sets it to the length of the string.
 * Returns 0, or EINVAL with a message. */
int hf__name_valid(const void *name, size_t *len, hf_error *);
/* Returns the line's name without the client's prefix, for messages. */
struct hf__shown hf__line_shown(struct hf__line *);
/* Returns the name of a kind: "mutex", "read-write lock" ... */
const char *hf__kind_name(int kind);

#endif
