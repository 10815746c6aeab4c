/* Entries of etcd locks: the forms of their keys, and their values. */
#include "../../cases.h"
#include "backends/etcd/entry.h"

#define LEN(a) (sizeof(a) / sizeof(*(a)))
#define OWN "0123456789abcdef-1"
#define GO "1700000000000000000" /* unix ns */

/* Returns an unterminated copy, so that a sanitizer notices reads beyond its
 * end. */
static char *bytes(const char *text, size_t len)
{
    char *p = malloc(len ? len : 1);

    assert_non_null(p);
    memcpy(p, text, len);
    return p;
}

static enum et_form form_of(const char *rest, size_t len, uint32_t *permits,
                            uint32_t *size)
{
    char *p = bytes(rest, len);
    enum et_form form = hf__et_form(p, len, permits, size);

    free(p);
    return form;
}

CASE(test_forms)
{
    static const struct {
        const char *rest;
        enum et_form form;
        int kind;
    } all[] = {
        {"1", ET_FORM_MUTEX, HF_MUTEX},
        {"694d7b1a2f3c4d5e", ET_FORM_MUTEX, HF_MUTEX},
        {"ffffffffffffffff", ET_FORM_MUTEX, HF_MUTEX},
        {"lock", ET_FORM_UNFAIR, HF_MUTEX},
        {"latch", ET_FORM_LATCH, HF_LATCH},
        {"read/" OWN, ET_FORM_READ, HF_RWLOCK},
        {"read/" GO, ET_FORM_READ, HF_RWLOCK},
        {"read/" OWN "+", ET_FORM_READ, HF_RWLOCK},
        {"write/" OWN, ET_FORM_WRITE, HF_RWLOCK},
        {"write/" GO, ET_FORM_WRITE, HF_RWLOCK},
        {"write/" OWN "+", ET_FORM_MARK, HF_RWLOCK},
        {"permit/" OWN ".1.1", ET_FORM_PERMIT, HF_SEMAPHORE},
        {"permit/" OWN ".4294967295.4294967295", ET_FORM_PERMIT, HF_SEMAPHORE},
    };

    for (size_t i = 0; i < LEN(all); i++) {
        enum et_form form =
            form_of(all[i].rest, strlen(all[i].rest), NULL, NULL);

        if (form != all[i].form || hf__et_kind(form) != all[i].kind)
            fail_msg("%s: %d", all[i].rest, (int)form);
    }
}

CASE(test_strangers)
{
    static const char *const all[] = {
        "",
        "g",
        "1F",
        " 1",
        "1 ",
        "-1",
        "0x1",
        "0123456789abcdef0",
        "1/",
        "1/2",
        "/1",
        "Lock",
        "lock/",
        "lock/1",
        "locks",
        "latch/",
        "latc",
        "read",
        "read/",
        "read/1",
        "read/0123456789abcdef", /* belongs to a mutex named NAME/read */
        "read/" OWN "/x",
        "reads/" OWN,
        "write/0123456789abcdef",
        "write//" OWN,
        "permit/" OWN,
        "permit/" OWN ".1",
        "permit/" OWN ".1.",
        "permit/" OWN "..1",
        "permit/" OWN ".0.1",
        "permit/" OWN ".1.0",
        "permit/" OWN ".1.-1",
        "permit/" OWN ".x.1",
        "permit/" OWN ".1.4294967296",
        "permit/" OWN ".10000000000.1",
        "permit/0123456789abcdef.1.1",
        "permit/.1.1",
        "permit/" OWN "/x.1.1",
    };

    for (size_t i = 0; i < LEN(all); i++)
        if (form_of(all[i], strlen(all[i]), NULL, NULL) != ET_FORM_NONE)
            fail_msg("\"%s\"", all[i]);
    assert_int_equal(form_of("1\0", 2, NULL, NULL), ET_FORM_NONE);
    assert_int_equal(form_of("\0", 1, NULL, NULL), ET_FORM_NONE);
    assert_int_equal(hf__et_kind(ET_FORM_NONE), 0);
}

/* hf__et_form() parses what hf__et_rest() writes, even with the longest
 * numbers. */
CASE(test_rest)
{
    static const int64_t leases[] = {1, INT64_MAX, INT64_MIN, -1};
    char rest[ET_REST_MAX];
    uint32_t permits, size;

    for (size_t i = 0; i < LEN(leases); i++)
        for (int form = ET_FORM_MUTEX; form <= ET_FORM_LATCH; form++) {
            size_t len = hf__et_rest(rest, (enum et_form)form, leases[i],
                                     UINT64_MAX, 7, UINT32_MAX);

            assert_true(len > 0 && len < ET_REST_MAX);
            permits = size = 0;
            assert_int_equal(form_of(rest, len, &permits, &size), form);
            if (form == ET_FORM_PERMIT) {
                assert_int_equal(permits, 7);
                assert_int_equal(size, UINT32_MAX);
            }
        }
    assert_int_equal(hf__et_rest(rest, ET_FORM_NONE, 1, 1, 1, 1), 0);
    hf__et_rest(rest, ET_FORM_MUTEX, 0x1f, 0, 0, 0);
    assert_string_equal(rest, "1f"); /* as in Go, without leading zeros */
    hf__et_rest(rest, ET_FORM_READ, 0x1f, 0xa, 0, 0);
    assert_string_equal(rest, "read/000000000000001f-a");
    hf__et_rest(rest, ET_FORM_PERMIT, 0x1f, 0xa, 2, 3);
    assert_string_equal(rest, "permit/000000000000001f-a.2.3");
}

static hf_party read_value(const char *text, size_t len, int64_t now_ms)
{
    hf_party p = {.left_ms = -1};
    char *value = bytes(text, len);

    hf__et_value_read(&p, value, len, now_ms);
    free(value);
    return p;
}

CASE(test_value)
{
    char value[ET_VALUE_MAX], label[400];
    hf_party p;
    size_t len;

    len = hf__et_value(value, "17\nhost\n", "job", 5000, 900000, 1000000);
    p = read_value(value, len, 1001000);
    assert_int_equal(p.pid, 17);
    assert_string_equal(p.host, "host");
    assert_string_equal(p.label, "job");
    assert_int_equal(p.since_unix_ms, 900000);
    assert_int_equal(p.left_ms, 4000);
    assert_int_equal(read_value(value, len, 2000000).left_ms, 0);
    /* The clock of the reader is behind that of the writer. */
    assert_int_equal(read_value(value, len, 1).left_ms, 5000);
    len = hf__et_value(value, "17\nhost\n", "", 0, 5, 5);
    p = read_value(value, len, 6);
    assert_int_equal(p.left_ms, -1);
    assert_string_equal(p.label, "");
    memset(label, 'l', sizeof(label));
    label[sizeof(label) - 1] = '\0';
    len = hf__et_value(value, "17\nhost\n", label, UINT32_MAX, INT64_MAX,
                       INT64_MAX);
    assert_true(len < ET_VALUE_MAX);
    assert_memory_equal(read_value(value, len, 0).label, label, 63);
}

/* Values that other programs wrote, and values that are cut off anywhere. */
CASE(test_value_of_strangers)
{
    static const char *const all[] = {
        "",
        "x",
        "holdfast",
        "Holdfast 1 1\n1\nh\nl",
        "holdfast \n\n\n\n\n",
        "holdfast 99999999999999999999 -99999999999999999999\n9999\nh\nl",
        "holdfast 4294967295 9223372036854775807 9223372036854775807\n1\nh\nl",
        "holdfast 9223372036854775807 -9223372036854775808 1\n1\nh\nl",
        "holdfast 1 1 -9223372036854775808\n1\nh\nl",
        "holdfast -1 -1\n-1\n\x01\x7f\xff\n\xff\xfe",
        "holdfast latch 5",
    };

    for (size_t i = 0; i < LEN(all); i++)
        for (size_t len = 0; len <= strlen(all[i]); len++) {
            hf_party p = read_value(all[i], len, 1000000);

            assert_true(p.left_ms >= -1);
            assert_true(memchr(p.host, '\0', sizeof(p.host)));
            assert_true(memchr(p.label, '\0', sizeof(p.label)));
        }
    assert_int_equal(read_value("x 1 1\n7\nh\nl", 11, 0).pid, 0);
}

static bool parse_count(const char *text, size_t len, uint64_t *count)
{
    char *value = bytes(text, len);
    bool is_one = hf__et_count_parse(value, len, count);

    free(value);
    return is_one;
}

CASE(test_count)
{
    static const uint64_t counts[] = {1, 42, UINT64_MAX};
    static const char *const none[] = {
        "",
        "5",
        "holdfast latch ",
        "holdfast latch 0",
        "holdfast latch 5x",
        "holdfast latch x",
        "holdfast latch -1",
        "holdfast latch  5",
        "holdfast latch 99999999999999999999",
        "holdfast latch 999999999999999999999999",
        "holdfast 0 5\n1",
    };
    char value[ET_VALUE_MAX];
    uint64_t count;

    for (size_t i = 0; i < LEN(counts); i++) {
        size_t len = hf__et_count_text(value, counts[i]);

        assert_true(parse_count(value, len, &count));
        assert_true(count == counts[i]);
        assert_false(parse_count(value, 15, &count)); /* number cut off */
    }
    for (size_t i = 0; i < LEN(none); i++)
        if (parse_count(none[i], strlen(none[i]), &count))
            fail_msg("\"%s\" is %llu", none[i], (unsigned long long)count);
}

CASES_MAIN(NULL, NULL);
