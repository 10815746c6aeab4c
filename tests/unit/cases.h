/*
 * Registration of test cases. CASE() defines a case and registers it;
 * CASES_MAIN() runs the cases of the program in the order of their lines.
 * CASE_WITH() passes the case a parameter. set_up() runs before the case, and
 * tear_down() after it.
 */
#ifndef UNIT_CASES_H
#define UNIT_CASES_H

/* Callbacks and fakes ignore many of their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct CMUnitTest all_cases[128];
static int case_lines[128];
static size_t cases_len;

/* The constructors of a file may run in any order, so the cases are sorted by
 * line. */
static inline void add_case(const char *name, CMUnitTestFunction run,
                            CMFixtureFunction set_up,
                            CMFixtureFunction tear_down, int line)
{
    size_t at = cases_len++;

    if (cases_len > sizeof(all_cases) / sizeof(*all_cases))
        abort();
    for (; at > 0 && case_lines[at - 1] > line; at--) {
        all_cases[at] = all_cases[at - 1];
        case_lines[at] = case_lines[at - 1];
    }
    all_cases[at] = (struct CMUnitTest){name, run, set_up, tear_down, NULL};
    case_lines[at] = line;
}

/* Calls that a case has deferred with defer(). They run after the case and
 * before tear_down(), the last deferred first, except those that forget() has
 * removed. They do not run if the case fails. */
static struct deferred {
    void (*end)(void *what);
    void *what;
} all_deferred[8192];
static size_t deferred_len;

static inline void defer(void (*end)(void *what), void *what)
{
    assert_true(deferred_len < sizeof(all_deferred) / sizeof(*all_deferred));
    all_deferred[deferred_len++] = (struct deferred){end, what};
}

static inline void forget(const void *what)
{
    for (size_t i = deferred_len; i-- > 0;)
        if (all_deferred[i].what == what)
            all_deferred[i].what = NULL;
}

static inline void end_deferred(void)
{
    while (deferred_len > 0) {
        struct deferred last = all_deferred[--deferred_len];

        if (last.what)
            last.end(last.what);
    }
}

/* `call` is the expression that calls the case with its parameter. */
#define CASE_CALLED(fn, parameter, set_up, tear_down, call)                    \
    static void fn(parameter);                                                 \
    static void run_##fn(void **state)                                         \
    {                                                                          \
        deferred_len = 0;                                                      \
        call;                                                                  \
        end_deferred();                                                        \
    }                                                                          \
    __attribute__((constructor)) static void add_##fn(void)                    \
    {                                                                          \
        add_case(#fn, run_##fn, set_up, tear_down, __LINE__);                  \
    }                                                                          \
    static void fn(parameter)

/* Defines a case whose parameter is what set_up() has stored in *state. */
#define CASE_WITH(fn, set_up, tear_down, parameter)                            \
    CASE_CALLED(fn, parameter, set_up, tear_down, fn(*state))

#define CASE_AROUND(fn, set_up, tear_down)                                     \
    CASE_WITH(fn, set_up, tear_down, void *state)

#define CASE(fn) CASE_AROUND(fn, NULL, NULL)

/* Defines a case that is one call of a function shared by several cases. */
#define ROW(fn, call)                                                          \
    CASE(fn)                                                                   \
    {                                                                          \
        call;                                                                  \
    }                                                                          \
    struct CMUnitTest

/* Runs all cases, between set_up() and tear_down() of the program. */
static inline int run_cases(CMFixtureFunction set_up,
                            CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests(program_invocation_short_name, all_cases,
                                   cases_len, set_up, tear_down);
}

#define CASES_MAIN(set_up, tear_down)                                          \
    int main(void)                                                             \
    {                                                                          \
        return run_cases(set_up, tear_down);                                   \
    }                                                                          \
    struct CMUnitTest

#endif
