#include "core/last_error.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/text.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/line.h"
#include "core/loss_reason.h"
#include "policy/lease.h"

#include <stdarg.h>
#include <stdio.h>

static void fail_set(hf_client *c, int code, bool may_pass, const char *fmt,
                     va_list ap)
{
    char text[720];

    vsnprintf(text, sizeof(text), fmt, ap);
    HF__HOLDING(&c->why_mu);
    hf__fail(&c->why, code, "%s: %s", c->be->name, text);
    c->why.may_pass = may_pass;
}

int hf__fail_why_set(hf_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail_set(c, code, hf__may_pass(c, code), fmt, ap);
    va_end(ap);
    return code;
}

int hf__fail_lasts_set(hf_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fail_set(c, code, false, fmt, ap);
    va_end(ap);
    return code;
}

void hf__trouble_set(hf_client *c, const char *text)
{
    hf__mutex_lock(&c->why_mu);
    snprintf(c->trouble, sizeof(c->trouble), "%s", text ? text : "");
    hf__printable(c->trouble, sizeof(c->trouble));
    hf__mutex_unlock(&c->why_mu);
    if (text)
        hf__note(c, HF__LOSS_SILENT, text);
    else
        hf__note_over(c, HF__LOSS_SILENT);
}

/* Only an EBACKEND of a networked backend may be temporary; a failure of shared
 * memory does not end by itself. A backend that knows that an EBACKEND is
 * permanent reports it by core->lasts(). */
bool hf__may_pass(const hf_client *c, int code)
{
    return code == HF_EBACKEND && !c->direct;
}

int hf__fail_passing(const hf_client *c, hf_error *err, int code)
{
    if (err)
        err->may_pass = hf__may_pass(c, code);
    return code;
}

/* Fails with the general message of the code, because the backend has given
 * none. */
static int fail_without_words(hf_client *c, hf_error *err, int code)
{
    return hf__fail_passing(
        c, err,
        hf__fail(err, code, "%s: %s", c->be->name, hf_error_text(code)));
}

int hf__fail_why(hf_client *c, hf_error *err, int code)
{
    HF__HOLDING(&c->why_mu);

    if (c->why.code != code)
        return fail_without_words(c, err, code);
    if (err)
        *err = c->why;
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
            (*why)->code = 0; /* the request no longer fails */
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
    return hf__fail_passing(c, err,
                            hf__fail(err, HF_EBACKEND,
                                     "%s: no answer to the request%s",
                                     c->be->name, hf__trouble(c).text));
}

struct hf__trouble hf__trouble(hf_client *c)
{
    HF__HOLDING(&c->why_mu);
    struct hf__trouble t = {""};

    if (c->trouble[0])
        snprintf(t.text, sizeof(t.text), "; cause: %s", c->trouble);
    return t;
}
