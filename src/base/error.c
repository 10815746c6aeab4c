#include "core/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static const struct known *find(int code)
{
    static const struct known none = {0, "HF_E?", "no such error code"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].code == code)
            return &known[i];
    return &none;
}

const char *hf_error_name(int code)
{
    return find(code)->name;
}

const char *hf_error_text(int code)
{
    return find(code)->text;
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
    hf__printable(err->text, sizeof(err->text)); /* a server's words, too */
    return code;
}

/* Unless a backend says otherwise (core->lasts). What is wrong with shared
 * memory does not pass. */
bool hf__may_pass(const hf_client *c, int code)
{
    return code == HF_EBACKEND && !c->direct;
}

/* Where the backend has not said why. */
static int fail_without_words(hf_client *c, hf_error *err, int code)
{
    hf__fail(err, code, "%s: %s", c->be->name, hf_error_text(code));
    if (err)
        err->may_pass = hf__may_pass(c, code);
    return code;
}

int hf__fail_why(hf_client *c, hf_error *err, int code)
{
    if (!err)
        return code;
    hf__mutex_lock(&c->why_mu);
    if (c->why.code == code)
        *err = c->why;
    else
        fail_without_words(c, err, code);
    hf__mutex_unlock(&c->why_mu);
    return code;
}

int hf__fail_word(hf_client *c, const hf_error *word, hf_error *err, int code)
{
    if (!word || word->code != code)
        return fail_without_words(c, err, code);
    if (err)
        *err = *word;
    return code;
}

void hf__keep_word_locked(hf_client *c, struct hf__exchange *x, bool let_go,
                          int code)
{
    hf_error **why;

    if (!x)
        return;
    why = &x->why[let_go];
    if (code >= 0) {
        if (*why)
            (*why)->code = 0; /* it does not fail any more */
        return;
    }
    if (!*why)
        *why = hf__alloc(c, sizeof(**why));
    if (*why)
        hf__fail_why(c, *why, code);
}

void hf__words_free(hf_client *c, struct hf__exchange *x)
{
    for (int i = 0; i < 2; i++) {
        hf__free(c, x->why[i]);
        x->why[i] = NULL;
    }
}

int hf__silence(hf_client *c, hf_error *err)
{
    hf__fail(err, HF_EBACKEND, "%s: no answer to the request%s", c->be->name,
             hf__trouble(c).text);
    if (err)
        err->may_pass = hf__may_pass(c, HF_EBACKEND);
    return HF_EBACKEND;
}

struct hf__trouble hf__trouble(hf_client *c)
{
    struct hf__trouble t = {""};

    hf__mutex_lock(&c->why_mu);
    if (c->trouble[0])
        snprintf(t.text, sizeof(t.text), "; cause: %s", c->trouble);
    hf__mutex_unlock(&c->why_mu);
    return t;
}
