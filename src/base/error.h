/* Error codes, their names, and how a function of the library fails. */
#ifndef HF_ERROR_H
#define HF_ERROR_H

#include <holdfast.h>

/* Fills in the error, if there is one, with a text that can be shown, and
 * returns the code: `return hf__fail(err, HF_EINVAL, "...")`. */
int hf__fail(hf_error *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
