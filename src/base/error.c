#include "base/error.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#define STR_(x) #x

#define STR(x) STR_(x)

const char *hf_version(void)
{
    return STR(HF_VERSION_MAJOR) "." STR(HF_VERSION_MINOR) "." STR(
        HF_VERSION_PATCH);
}

#define HF_X(name, number, text) {number, "HF_" #name, text},

static const struct known {
    int code;
    const char *name, *text;
} known[] = {{0, "HF_OK", "success"}, HF_ERRORS(HF_X)};

#undef HF_X

static const struct known *error_find(int code)
{
    static const struct known none = {0, "HF_E?", "no such error code"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].code == code)
            return &known[i];
    return &none;
}

const char *hf_error_name(int code)
{
    return error_find(code)->name;
}

const char *hf_error_text(int code)
{
    return error_find(code)->text;
}

int hf__fail(hf_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    err->code = code;
    err->may_pass = 0;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    /* The message may quote the server. */
    hf__printable(err->text, sizeof(err->text));
    return code;
}
