/* hf_diagnose(): the findings that are the same for every backend. */
#include "../lib/diagnosis.h"
#include "conf.h"

CONF_CASE(test_diagnose_finds_and_advises, CONF_INSPECT)
{
    hf_client *c = conf_open();
    enum hf_level worst = HF_LEVEL_OK;
    hf_diagnosis *d;

    OK(hf_diagnose(c, &d, E));
    conf_close(c); /* the diagnosis must outlive the client */
    assert_true(d->len > 3);
    assert_string_equal(d->findings[0].subject, "promise");
    assert_int_equal(d->findings[0].level, HF_LEVEL_OK);
    for (size_t i = 0; i < d->len; i++) {
        const hf_finding *f = &d->findings[i];

        assert_true(f->subject[0] && f->text[0]);
        assert_true(f->level <= HF_LEVEL_ERROR);
        worst = f->level > worst ? f->level : worst;
    }
    assert_int_equal(d->level, worst);
    assert_true(worst < HF_LEVEL_ERROR);
    hf_diagnosis_free(d);
    hf_diagnosis_free(NULL);
}

CONF_CASE(test_diagnose_takes_a_lock, CONF_INSPECT)
{
    hf_client *c = conf_open();
    hf_info *info;

    diagnosis_says(c, HF_LEVEL_OK, "locking", "acquired and released");
    info = conf_inspect(c, "holdfast-diagnose");
    assert_int_equal(info->holders_len, 0);
}

CONF_CASE(test_diagnose_wrong_arguments, 0)
{
    hf_client *c = conf_open();
    hf_diagnosis *d = (hf_diagnosis *)1;

    EXPECT(HF_EINVAL, hf_diagnose(c, NULL, E));
    EXPECT(HF_EINVAL, hf_diagnose(NULL, &d, E));
    assert_null(d);
}
