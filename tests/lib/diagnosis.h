/* What hf_diagnose() has to find. */
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

/* There is a finding of that level on the subject, with that word in it. */
static inline void diagnosis_says(hf_client *c, enum hf_level level,
                                  const char *subject, const char *word)
{
    hf_diagnosis *d = NULL;
    hf_error err = HF_ERROR_INIT;
    bool met = false;

    if (hf_diagnose(c, &d, &err))
        fail_msg("hf_diagnose: %s", err.text);
    for (size_t i = 0; i < d->len; i++) {
        const hf_finding *f = &d->findings[i];

        met = met || (f->level == level && strcmp(f->subject, subject) == 0 &&
                      strstr(f->text, word));
    }
    for (size_t i = 0; i < d->len && !met; i++)
        print_error("%d %s: %s\n", d->findings[i].level, d->findings[i].subject,
                    d->findings[i].text);
    hf_diagnosis_free(d);
    if (!met)
        fail_msg("nothing of level %d on %s with \"%s\"", level, subject, word);
}

#endif
