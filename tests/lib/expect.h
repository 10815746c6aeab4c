/*
 * Assertions that report more than cmocka's. A failure of EXPECT prints the
 * call, the names of both codes, and the message of the last error.
 */
#ifndef TESTS_EXPECT_H
#define TESTS_EXPECT_H

#include <holdfast.h>
#include <stdbool.h>

#define EXPECT(code, call)                                                     \
    expect_code((code), (call), #call, __FILE__, __LINE__)
#define OK(call) EXPECT(0, call)

/* Asserts that the call returns a code other than 0. */
#define FAILS(call) expect_failure((call), #call, __FILE__, __LINE__)
/* Runs the assertion, and fails the case if that takes more than `ms`
 * milliseconds by the fair clock. Needs wait.h. */
#define WITHIN(ms, assertion)                                                  \
    do {                                                                       \
        int64_t within_began = wait_fair();                                    \
                                                                               \
        assertion;                                                             \
        expect_true(wait_within(within_began, ms), #assertion, __FILE__,       \
                    __LINE__);                                                 \
    } while (0)
/* Asserts that the condition becomes true: COMES() within WAIT_LONG_MS,
 * COMES_MS() within `ms`. Needs wait.h. */
#define COMES(cond) COMES_MS(cond, WAIT_LONG_MS)
#define COMES_MS(cond, ms)                                                     \
    expect_true(WAIT_FOR_MS(cond, ms), #cond, __FILE__, __LINE__)

/* Returns a formatted string, cut at 512 bytes, which is valid until the same
 * thread has made 64 more calls. */
const char *text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The error that the running case passes to its calls, or NULL. */
extern const hf_error *expect_error;

/* Fails the running case, with that line, unless rc equals the code. */
void expect_code(int code, int rc, const char *call, const char *file,
                 int line);
/* Fails the running case, with that line, if rc is 0. */
void expect_failure(int rc, const char *call, const char *file, int line);
/* Fails the running case, with that line, unless `met`. */
void expect_true(bool met, const char *cond, const char *file, int line);
/* Fails the running case unless `text` contains the words. */
void expect_words(const char *text, const char *words);

#endif
