/* How a function of the library fails: a code, and a text for people. */
#ifndef HF_ERROR_H
#define HF_ERROR_H

#include <holdfast.h>

/* Sets the error, if there is one, with a text that is safe to show, and
 * returns the code: `return hf__fail(err, HF_EINVAL, "...")`. */
int hf__fail(hf_error *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
