/* Names of locks: which are valid, and how they and their kinds are shown to
 * people. */
#ifndef HF_NAME_TEXT_H
#define HF_NAME_TEXT_H

#include "base/text.h"
#include "core/line.h"

/* Checks a name. Returns 0, or EINVAL with a message. Sets *len to the length
 * if it was HF_CSTRING. */
int hf__name_valid(const void *name, size_t *len, hf_error *);
/* Returns the line's name without the client's prefix, for messages. */
struct hf__shown hf__line_shown(struct hf__line *);
/* Returns the name of a kind: "mutex", "read-write lock" ... */
const char *hf__kind_name(int kind);

#endif
