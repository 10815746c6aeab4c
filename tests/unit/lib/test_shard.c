/* The shards of a suite: each case is in one of them, and in one alone. */
#include "../../lib/shard.h"
#include "../cases.h"

static unsigned shards_with(size_t i, unsigned of)
{
    unsigned n = 0;
    char text[32];
    struct shard s;

    for (unsigned index = 0; index < of; index++) {
        snprintf(text, sizeof(text), "%u/%u", index, of);
        assert_true(shard_parse(text, &s));
        n += shard_has(&s, i);
    }
    return n;
}

CASE(test_shard_each_case_is_in_one_alone)
{
    for (unsigned of = 1; of <= 12; of++)
        for (size_t i = 0; i < 100; i++)
            assert_int_equal(shards_with(i, of), 1);
}

CASE(test_shard_none_is_everything)
{
    struct shard s;

    assert_true(shard_parse(NULL, &s));
    for (size_t i = 0; i < 100; i++)
        assert_true(shard_has(&s, i));
}

CASE(test_shard_what_names_none_is_refused)
{
    static const char *const texts[] = {"",    "1",    "3/3",  "0/0",
                                        "a/2", "0/2x", "-1/2", "0/-1x"};
    struct shard s;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_false(shard_parse(texts[i], &s));
}

CASES_MAIN(NULL, NULL);
