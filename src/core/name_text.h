/* Names of locks: which are valid, how one is shown to people, and the names of
 * the kinds. */
#ifndef HF_NAME_TEXT_H
#define HF_NAME_TEXT_H

#include "base/text.h"
#include "core/line.h"

/* EINVAL with a text; *len is found if it was HF_CSTRING. */
int hf__name_valid(const void *name, size_t *len, hf_error *);
/* Its name, for people: without the client's prefix. */
struct hf__shown hf__line_shown(struct hf__line *);
/* "mutex", "read-write lock" ...: for people. */
const char *hf__kind_name(int kind);

#endif
