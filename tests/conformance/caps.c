/* Capabilities: each declared one works, and everything else returns
 * HF_ENOTSUP. */
#include "conf.h"

static int new_of(hf_client *c, enum hf_kind kind, enum hf_fairness fairness)
{
    hf_lock_options opt = LOCK_OPTIONS(.kind = kind, .fairness = fairness,
                                       .permits = kind == HF_SEMAPHORE ? 3 : 0);
    hf_lock *lock = (hf_lock *)&opt;
    int rc;

    rc = hf_lock_new(c, conf_name(), HF_CSTRING, &opt, &lock, E);
    if (rc) {
        assert_null(lock);
        return rc;
    }
    rc = hf_lock_acquire(lock, NULL, E);
    if (!rc)
        rc = hf_lock_release(lock, E);
    OK(hf_lock_free(lock));
    return rc;
}

CONF_CASE(test_caps_of_a_mutex_are_declared, 0)
{
    hf_client *c = conf_open();
    int caps = hf_client_caps(c, HF_MUTEX);

    assert_true(caps > 0);
    assert_true(caps & (HF_CAP_FAIR | HF_CAP_UNFAIR));
}

CONF_CASE(test_caps_fairness_is_as_declared, 0)
{
    static const struct {
        enum hf_fairness fairness;
        int cap;
    } each[] = {{HF_FAIR, HF_CAP_FAIR}, {HF_UNFAIR, HF_CAP_UNFAIR}};
    hf_client *c = conf_open();

    for (int kind = HF_MUTEX; kind <= HF_SEMAPHORE; kind++)
        for (int i = 0; i < 2; i++) {
            int caps = hf_client_caps(c, (enum hf_kind)kind);

            EXPECT(caps & each[i].cap ? 0 : HF_ENOTSUP,
                   new_of(c, (enum hf_kind)kind, each[i].fairness));
        }
}

CONF_CASE(test_caps_kinds_are_as_declared, 0)
{
    hf_client *c = conf_open();

    for (int kind = HF_MUTEX; kind <= HF_SEMAPHORE; kind++)
        EXPECT(hf_client_caps(c, (enum hf_kind)kind) ? 0 : HF_ENOTSUP,
               new_of(c, (enum hf_kind)kind, HF_FAIR_DEFAULT));
}

/* hf_open() may refuse a default fairness that no kind supports. */
CONF_CASE(test_caps_fairness_of_the_url_is_the_default, 0)
{
    static const struct {
        const char *option;
        int cap;
    } each[] = {{"fair=yes", HF_CAP_FAIR}, {"fair=no", HF_CAP_UNFAIR}};

    for (int i = 0; i < 2; i++) {
        hf_client *c;
        int rc = hf_open(conf_url_with(each[i].option), NULL, &c, E);

        if (rc && !(conf.caps & each[i].cap)) {
            EXPECT(HF_EINVAL, rc);
            continue;
        }
        OK(rc);
        EXPECT(conf.caps & each[i].cap ? 0 : HF_ENOTSUP,
               new_of(c, HF_MUTEX, HF_FAIR_DEFAULT));
        OK(hf_close(c));
    }
}

CONF_CASE(test_caps_latch_is_as_declared, 0)
{
    hf_client *c = conf_open();
    hf_latch *latch = (hf_latch *)c;
    int caps = hf_client_caps(c, HF_LATCH);

    assert_true(caps >= 0);
    EXPECT(caps ? 0 : HF_ENOTSUP,
           hf_latch_new(c, conf_name(), HF_CSTRING, &latch, E));
    assert_int_equal(latch != NULL, caps != 0);
    OK(hf_latch_free(latch));
}

CONF_CASE(test_caps_inspection_is_as_declared, 0)
{
    hf_client *c = conf_open();
    bool has = conf.caps & HF_CAP_INSPECT;
    const char *name = conf_name();
    hf_info *info = NULL;
    hf_names *names = NULL;
    hf_diagnosis *found = NULL;

    EXPECT(has ? 0 : HF_ENOTSUP, hf_inspect(c, name, HF_CSTRING, &info, E));
    EXPECT(has ? 0 : HF_ENOTSUP, hf_list(c, NULL, &names, E));
    EXPECT(has ? HF_ENOTOWNER : HF_ENOTSUP, hf_break(c, name, HF_CSTRING, E));
    EXPECT(has ? HF_ENOTOWNER : HF_ENOTSUP,
           hf_break_hold(c, name, HF_CSTRING, 1, NULL, E));
    EXPECT(has || strncmp(conf.url, "redlock:", 8) == 0 ? 0 : HF_ENOTSUP,
           hf_diagnose(c, &found, E));
    hf_diagnosis_free(found);
    hf_info_free(info);
    hf_names_free(names);
}

CONF_CASE(test_caps_ask_is_as_declared, 0)
{
    hf_client *c = conf_open();
    bool has = conf.caps & HF_CAP_WANTED;

    EXPECT(has ? HF_ENOTOWNER : HF_ENOTSUP,
           hf_ask(c, conf_name(), HF_CSTRING, E));
}

CONF_CASE(test_caps_put_is_as_declared, 0)
{
    bool has = conf.caps & HF_CAP_PUT;
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    const char *key = conf_name();

    EXPECT(has ? HF_ENOTOWNER : HF_ENOTSUP,
           hf_lock_put(lock, key, HF_CSTRING, "1", 1, E));
    OK(hf_lock_acquire(lock, NULL, E));
    EXPECT(has ? 0 : HF_ENOTSUP, hf_lock_put(lock, key, HF_CSTRING, "1", 1, E));
    OK(hf_lock_release(lock, E));
    if (has && conf.unput)
        conf.unput(key);
}

/* A mutex has only one mode, and therefore neither a downgrade nor an
 * upgrade. */
CONF_CASE(test_caps_mutex_has_no_downgrade_and_no_upgrade, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());

    EXPECT(HF_ENOTOWNER, hf_lock_downgrade(lock, E));
    OK(hf_lock_acquire(lock, NULL, E));
    EXPECT(HF_ENOTSUP, hf_lock_downgrade(lock, E));
    EXPECT(HF_ENOTSUP, hf_lock_upgrade(lock, E));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}
