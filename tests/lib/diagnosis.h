/* Assertions about the findings of hf_diagnose(). */
#ifndef TESTS_DIAGNOSIS_H
#define TESTS_DIAGNOSIS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast.h>

static inline bool diagnosis_has(const hf_diagnosis *d, enum hf_level level,
                                 const char *subject, const char *word)
{
    for (size_t i = 0; i < d->len; i++) {
        const hf_finding *f = &d->findings[i];

        if (f->level == level && strcmp(f->subject, subject) == 0 &&
            strstr(f->text, word))
            return true;
    }
    for (size_t i = 0; i < d->len; i++)
        print_error("%d %s: %s\n", d->findings[i].level, d->findings[i].subject,
                    d->findings[i].text);
    return false;
}

/* Asserts that the subject has a finding of that level with that word in its
 * text. Repeats the diagnosis a few times until such a finding appears, because
 * a stall of the machine causes other findings. */
static inline void diagnosis_says(hf_client *c, enum hf_level level,
                                  const char *subject, const char *word)
{
    hf_error err = HF_ERROR_INIT;
    bool met = false;

    for (int i = 0; i < 5 && !met; i++) {
        hf_diagnosis *d = NULL;

        if (hf_diagnose(c, &d, &err))
            print_error("hf_diagnose: %s\n", err.text);
        else
            met = diagnosis_has(d, level, subject, word);
        hf_diagnosis_free(d);
    }
    if (!met)
        fail_msg("no finding of level %d: %s, \"%s\"", level, subject, word);
}

/* Returns the number of findings on the subject whose text contains that
 * word. */
static inline int diagnosis_count(hf_client *c, const char *subject,
                                  const char *word)
{
    hf_error err = HF_ERROR_INIT;
    hf_diagnosis *d = NULL;
    int n = 0;

    if (hf_diagnose(c, &d, &err))
        fail_msg("hf_diagnose: %s", err.text);
    for (size_t i = 0; i < d->len; i++)
        n += strcmp(d->findings[i].subject, subject) == 0 &&
             strstr(d->findings[i].text, word) != NULL;
    hf_diagnosis_free(d);
    return n;
}

static inline void diagnosis_lacks(hf_client *c, const char *subject)
{
    if (diagnosis_count(c, subject, ""))
        fail_msg("unexpected finding on %s", subject);
}

#endif
