/* What hf_diagnose() says of one server and of an ensemble. */
#include "zk_faults.h"

#include "../../lib/diagnosis.h"
#include "../../lib/proc.h"

#include <stdio.h>

#define LONG_MS 30000 /* within what the server allows */

static hf_client *open_with(struct world *w, const char *user, int64_t ttl_ms)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    char url[128];

    opt.ttl_ms = ttl_ms;
    snprintf(url, sizeof(url), "zk://%s127.0.0.1:%d", user, w->zk->port);
    if (proc_open(url, &opt, &c, &w->err))
        fail_msg("%s", w->err.text);
    return c;
}

static void test_diagnose_session(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, "", LONG_MS);

    diagnosis_says(c, HF_LEVEL_OK, "session", "is the ttl");
    diagnosis_says(c, HF_LEVEL_WARNING, "ensemble", "one server");
    diagnosis_says(c, HF_LEVEL_OK, "promise", "within 30 s");
    diagnosis_says(c, HF_LEVEL_OK, "version", "3.5 or later");
    diagnosis_says(c, HF_LEVEL_OK, "locking", "");
    assert_int_equal(hf_close(c), 0);
    c = open_with(w, "", 1000000);
    diagnosis_says(c, HF_LEVEL_WARNING, "session", "maxSessionTimeout");
    assert_int_equal(hf_close(c), 0);
    c = open_with(w, "", HF_LEASE_MIN_MS);
    diagnosis_says(c, HF_LEVEL_WARNING, "session", "minSessionTimeout");
    assert_int_equal(hf_close(c), 0);
}

static void test_diagnose_rights(void **state)
{
    struct world *w = *state;
    hf_client *c = open_with(w, "ann:Geheimnis-1@", LONG_MS);

    diagnosis_says(c, HF_LEVEL_OK, "rights", "only the user of the URL");
    assert_int_equal(hf_close(c), 0);
    world_is_clean(w); /* nobody else may touch what is that user's */
    c = open_with(w, "", LONG_MS);
    diagnosis_says(c, HF_LEVEL_OK, "rights", "every client");
    assert_int_equal(hf_close(c), 0);
}

/* Somebody else's lock of that name: who it is, is not asked. */
static void test_diagnose_lock_is_taken(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = open_with(w, "", LONG_MS), *other = NULL;
    hf_lock *lock;

    assert_int_equal(
        hf_lock_new(c, "holdfast-diagnose", HF_CSTRING, NULL, &lock, &w->err),
        0);
    assert_int_equal(hf_lock_acquire(lock, NULL, &w->err), 0);
    opt.op_timeout_ms = 1000;
    assert_int_equal(proc_open(w->zk->url, &opt, &other, &w->err), 0);
    diagnosis_says(other, HF_LEVEL_ERROR, "locking", "not granted");
    assert_int_equal(hf_lock_release(lock, &w->err), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(hf_close(other), 0);
}

void test_diagnose_counts_the_servers(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;

    assert_int_equal(hf_open(zk_three.url, NULL, &c, &w->err), 0);
    diagnosis_says(c, HF_LEVEL_OK, "ensemble", "3 servers, of which 1");
    diagnosis_says(c, HF_LEVEL_OK, "hosts", "names 3 of 3");
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(hf_open(zk_three.server[1].url, NULL, &c, &w->err), 0);
    diagnosis_says(c, HF_LEVEL_WARNING, "hosts", "names 1 of 3");
    assert_int_equal(hf_close(c), 0);
}

int run_diagnose_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_diagnose_session),
        T(test_diagnose_rights),
        T(test_diagnose_lock_is_taken),
    };

    return cmocka_run_group_tests_name("zookeeper: diagnosis", tests, group_one,
                                       group_one_end);
}
