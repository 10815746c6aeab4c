#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

const hf_error *expect_error;

void expect_code(int code, int rc, const char *call, const char *file, int line)
{
    if (rc == code)
        return;
    print_error("%s: got %s (%d), wanted %s; last error: %s\n", call,
                hf_error_name(rc), rc, hf_error_name(code),
                expect_error ? expect_error->text : "");
    _fail(file, line);
}

const char *text_of(const char *fmt, ...)
{
    static _Thread_local char texts[64][512];
    static _Thread_local unsigned next;
    char *text = texts[next++ % 64];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(texts[0]), fmt, ap);
    va_end(ap);
    return text;
}

void expect_failure(int rc, const char *call, const char *file, int line)
{
    if (rc)
        return;
    print_error("%s: succeeded\n", call);
    _fail(file, line);
}

void expect_true(bool met, const char *cond, const char *file, int line)
{
    if (met)
        return;
    print_error("not true in time: %s\n", cond);
    _fail(file, line);
}

void expect_words(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}
