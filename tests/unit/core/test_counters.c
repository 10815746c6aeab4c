/* The counters of hf_client_metrics(), and the output of hf_metrics_text(). The
 * conformance suite tests what is counted; metrics_text.py tests that
 * Prometheus can parse the output. */
#include "../../lib/shm_dir.h"
#include "../cases.h"

#include "base/time.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/lock.h"

static char dir[64], url[128];

static int setup(void **state)
{
    if (!shm_dir_make(dir, sizeof(dir), "holdfast-metrics"))
        return -1;
    snprintf(url, sizeof(url), "shm://%s/shm", dir);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    return system(command);
}

static hf_metrics look(hf_client *c)
{
    hf_metrics m = HF_METRICS_INIT;

    assert_int_equal(hf_client_metrics(c, &m, NULL), 0);
    return m;
}

static void is(hf_client *c, uint64_t granted, uint64_t released, uint64_t held)
{
    hf_metrics m = look(c);

    assert_int_equal(m.granted, granted);
    assert_int_equal(m.released, released);
    assert_int_equal(m.held, held);
    assert_int_equal(m.wait[0].count, granted);
}

/* A line counts with a few bits. These counts are added to larger counters
 * before they overflow, so that any number can be counted. */
CASE(test_metrics_carry)
{
    const uint64_t many = HF__TALLY_RELEASE / 2 - 2;
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    uint64_t granted = 0, released = 0;

    assert_int_equal(hf_open(url, NULL, &c, NULL), 0);
    assert_int_equal(hf_lock_new(c, "carry", HF_CSTRING, NULL, &lock, NULL), 0);
    for (int i = 0; i < 5; i++) {
        /* Adds `many` releases to the tally and, in every second round, `many`
         * acquires that did not wait. Acquires that had to wait are counted
         * elsewhere. */
        lock->line->tally += many * HF__TALLY_RELEASE;
        released += many;
        if (!(i & 1))
            lock->line->tally += many * HF__TALLY_GRANT;
        granted += i & 1 ? 0 : many;
        for (int j = 0; j < 4; j++) {
            is(c, granted, released, 0);
            assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
            is(c, ++granted, released, 1);
            assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
            is(c, ++granted, released, 1);
            assert_int_equal(hf_lock_release(lock, NULL), 0);
            is(c, granted, ++released, 1);
            assert_int_equal(hf_lock_release(lock, NULL), 0);
            is(c, granted, ++released, 0);
        }
        assert_true(hf__tally_granted(lock->line->tally) < 10);
        assert_true(hf__tally_released(lock->line->tally) < 10);
    }
    assert_int_equal(hf_lock_free(lock), 0);
    is(c, granted, released, 0);
    assert_int_equal(hf_close(c), 0);
}

/* A wait as long as a bound belongs to the bucket of that bound; waits longer
 * than all bounds are counted too. */
CASE(test_metrics_buckets)
{
    hf_client *c = NULL;
    hf_metrics m;
    uint64_t sum = 0;

    assert_int_equal(hf_open(url, NULL, &c, NULL), 0);
    m = look(c);
    assert_int_equal(m.wait[0].le_us, 10);
    assert_int_equal(m.wait[HF_WAIT_BUCKETS - 1].le_us, 100 * 1000000);
    for (int i = 0; i < HF_WAIT_BUCKETS; i++) {
        hf__time le = (hf__time)m.wait[i].le_us * 1000;

        hf__count_wait(c, HF_MUTEX);
        hf__count_waited(c, HF_MUTEX, HF__GRANTED, le);
        hf__count_wait(c, HF_MUTEX);
        hf__count_waited(c, HF_MUTEX, HF__GRANTED, le + 1);
        sum += 2 * (uint64_t)le + 1;
    }
    hf__count_wait(c, HF_MUTEX);
    hf__count_waited(c, HF_MUTEX, HF__GRANTED, -1);
    m = look(c);
    for (int i = 0; i < HF_WAIT_BUCKETS; i++)
        assert_int_equal(m.wait[i].count, 2 * i + 2);
    assert_int_equal(m.granted, 2 * HF_WAIT_BUCKETS + 1);
    assert_int_equal(m.wait_sum_ns, sum);
    assert_int_equal(m.waiting, 0);
    assert_int_equal(hf_close(c), 0);
}

static hf_metrics zero(void)
{
    return (hf_metrics)HF_METRICS_INIT;
}

static void refuses(const hf_label *labels, size_t n, const char *why)
{
    hf_metrics m = zero();
    hf_series s = {&m, labels, n};
    hf_error err = HF_ERROR_INIT;
    char buf[4] = "abc";

    assert_int_equal(hf_metrics_text(&s, 1, buf, sizeof(buf), &err), HF_EINVAL);
    assert_int_equal(err.code, HF_EINVAL);
    assert_non_null(strstr(err.text, why));
    assert_string_equal(buf, "abc");
}

CASE(test_metrics_text_refuses_labels)
{
    static const char *const names[] = {"", "9x", "a-b", "a b", "\xc3\xa4"};
    static const char *const reserved[] = {"le", "result", "__name__"};
    hf_label twice[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        refuses(&(hf_label){names[i], "x"}, 1, "not valid");
    for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
        refuses(&(hf_label){reserved[i], "x"}, 1, "is reserved");
    refuses(twice, 3, "\"a\" is given twice");
    refuses(&(hf_label){NULL, "x"}, 1, "the name of label 0 is NULL");
    refuses(&(hf_label){"x", NULL}, 1, "the value of label 0 is NULL");
    refuses(NULL, 1, "labels is NULL");
}

CASE(test_metrics_text_refuses_series)
{
    hf_label one[] = {{"a", "1"}, {"b", "2"}},
             same[] = {{"b", "2"}, {"a", "1"}};
    hf_label other[] = {{"a", "1"}, {"b", "3"}};
    hf_metrics m = zero(), wrong = zero();
    hf_series s[2] = {{&m, one, 2}, {&m, same, 2}};

    wrong.size--;
    assert_int_equal(hf_metrics_text(s, 2, NULL, 0, NULL), HF_EINVAL);
    s[1].labels = other;
    assert_true(hf_metrics_text(s, 2, NULL, 0, NULL) > 0);
    s[1].labels_len = 1;
    assert_true(hf_metrics_text(s, 2, NULL, 0, NULL) > 0);
    s[1].metrics = NULL;
    assert_int_equal(hf_metrics_text(s, 2, NULL, 0, NULL), HF_EINVAL);
    s[1].metrics = &wrong;
    assert_int_equal(hf_metrics_text(s, 2, NULL, 0, NULL), HF_EINVAL);
    assert_int_equal(hf_metrics_text(s, 0, NULL, 0, NULL), HF_EINVAL);
    assert_int_equal(hf_metrics_text(NULL, 1, NULL, 0, NULL), HF_EINVAL);
}

/* The buffer may have any size or be missing, as for snprintf(). */
CASE(test_metrics_text_is_cut)
{
    hf_label label = {"name", "a \"name\"\nwith \\ and \x01, \xff"};
    hf_metrics m = zero();
    hf_series s = {&m, &label, 1};
    int len = hf_metrics_text(&s, 1, NULL, 0, NULL);
    char *whole = malloc((size_t)len + 1), *part = malloc((size_t)len + 1);

    assert_int_equal(hf_metrics_text(&s, 1, whole, (size_t)len + 1, NULL), len);
    assert_int_equal(strlen(whole), len);
    assert_non_null(strstr(
        whole, "{name=\"a \\\"name\\\"\\nwith \\\\ and \\\\x01, \\\\xff\"}"));
    for (size_t size = 1; size <= (size_t)len; size++) {
        memset(part, '#', (size_t)len + 1);
        assert_int_equal(hf_metrics_text(&s, 1, part, size, NULL), len);
        assert_int_equal(strlen(part), size - 1);
        assert_memory_equal(part, whole, size - 1);
        assert_int_equal(part[size], '#');
    }
    free(whole);
    free(part);
}

CASES_MAIN(setup, teardown);
