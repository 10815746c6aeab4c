/* Every group of cases that a program runs goes through here: it is linked with
 * --wrap=_cmocka_run_group_tests. */
#include "shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

int __real__cmocka_run_group_tests(const char *name,
                                   const struct CMUnitTest *tests, size_t len,
                                   CMFixtureFunction setup,
                                   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name,
                                   const struct CMUnitTest *tests, size_t len,
                                   CMFixtureFunction setup,
                                   CMFixtureFunction teardown);

static int run_some(const struct shard *s, const char *name,
                    const struct CMUnitTest *tests, size_t len,
                    CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest *some = calloc(len, sizeof(*some));
    size_t n = 0;
    int failed;

    if (!some)
        return 1;
    for (size_t i = 0; i < len; i++)
        if (shard_has(s, i))
            some[n++] = tests[i];
    printf("# shard %u/%u: %zu of %zu cases\n", s->index, s->of, n, len);
    fflush(stdout);
    failed = __real__cmocka_run_group_tests(name, some, n, setup, teardown);
    free(some);
    return failed;
}

int __wrap__cmocka_run_group_tests(const char *name,
                                   const struct CMUnitTest *tests, size_t len,
                                   CMFixtureFunction setup,
                                   CMFixtureFunction teardown)
{
    const char *text = getenv("TEST_SHARD");
    struct shard s;

    if (!shard_parse(text, &s)) {
        fprintf(stderr, "TEST_SHARD=%s is no shard\n", text);
        return 1;
    }
    if (s.of == 1)
        return __real__cmocka_run_group_tests(name, tests, len, setup,
                                              teardown);
    return run_some(&s, name, tests, len, setup, teardown);
}
