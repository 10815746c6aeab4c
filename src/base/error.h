/* How functions of the library fail: with an error code and an error message
 * for people. */
#ifndef HF_ERROR_H
#define HF_ERROR_H

#include <holdfast.h>

/* Sets *err to the code and the message, unless err is NULL. Characters of the
 * message that are unsafe to show are escaped. Returns the code, so that a
 * caller can write `return hf__fail(err, HF_EINVAL, "...")`. */
int hf__fail(hf_error *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
