/* The clock and the waits that other tests stand on: they fail when they
 * should. */
#include "../../lib/wait.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MS 1000000LL

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

static void test_fair_clock_never_runs_ahead(void **state)
{
    int64_t fair, now;

    (void)state;
    for (int i = 0; i < 20; i++) {
        now = wait_now();
        fair = wait_fair();
        sleep_ms(5);
        fair = wait_fair() - fair;
        assert_true(fair <= wait_now() - now);
    }
}

/* On the busiest machine there is a moment at which everybody has a processor;
 * then it goes as the other one. It may go back before: what the host has taken
 * from several processors is counted for each. */
static void test_fair_clock_goes(void **state)
{
    int64_t gone = 0, then, step;

    (void)state;
    for (int i = 0; i < 16000 && gone <= 200 * MS; i++) {
        then = wait_fair();
        sleep_ms(5);
        step = wait_fair() - then;
        gone += step > 0 ? step : 0;
    }
    assert_true(gone > 200 * MS);
}

static void test_bound_that_is_over_is_noticed(void **state)
{
    int64_t long_ago = wait_fair() - (200 + WAIT_SLACK_MS + 1) * MS;

    (void)state;
    assert_true(wait_within(wait_fair(), WAIT_LONG_MS));
    assert_false(wait_within(long_ago, 200));
}

static void test_wait_that_is_not_met_ends(void **state)
{
    int64_t began = wait_now();

    (void)state;
    assert_false(WAIT_FOR_MS(false, 50));
    assert_true(wait_now() - began >= 50 * MS);
    assert_true(wait_now() - began < (50 + 2 * WAIT_LONG_MS) * MS);
}

static void test_wait_that_is_met_ends_at_once(void **state)
{
    int looks = 0;

    (void)state;
    assert_true(WAIT_FOR(++looks == 3));
    assert_int_equal(looks, 3);
}

static void test_never_lasts_and_notices(void **state)
{
    int64_t began = wait_now();
    int looks = 0;

    (void)state;
    assert_true(NEVER_MS(false, 50));
    assert_true(wait_now() - began >= 50 * MS);
    assert_false(NEVER_MS(++looks == 3, WAIT_LONG_MS));
    assert_int_equal(looks, 3);
}

static void test_too_soon_is_noticed(void **state)
{
    struct wait_mark began = wait_mark();

    (void)state;
    sleep_ms(20);
    assert_true(wait_took(began, 20, WAIT_LONG_MS));
    assert_false(wait_took(began, 10 * WAIT_LONG_MS, 20 * WAIT_LONG_MS));
}

static void test_who_runs_is_not_asleep(void **state)
{
    (void)state;
    assert_int_equal(wait_state(getpid(), getpid()), 'R');
    assert_int_equal(wait_state(getpid(), 1), getpid() == 1 ? 'R' : 0);
}

/* Wants that processor, and no other. */
static pid_t spin_on(int cpu)
{
    cpu_set_t set;
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
    for (;;)
        ;
}

static void test_fair_clock_stands_while_somebody_waits(void **state)
{
    int64_t before = wait_stalled();
    int cpu = sched_getcpu();
    pid_t pid[] = {spin_on(cpu), spin_on(cpu)};
    bool rises = WAIT_FOR(wait_stalled() - before > 50 * MS);

    (void)state;
    for (int i = 0; i < 2; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
    }
    assert_true(rises || !wait_is_fair());
}

static void test_what_was_stolen_is_counted(void **state)
{
    (void)state;
    assert_true(wait_stolen() >= 0);
    assert_true(wait_stalled() >= wait_stolen());
}

/* Or a bound of seconds would be over at once. */
static void test_fair_clock_needs_no_descriptor(void **state)
{
    struct rlimit old, none;
    int64_t before, without;

    (void)state;
    assert_true(WAIT_FOR((before = wait_stalled()) > 0));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    sleep_ms(30); /* so that it looks again */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    without = wait_stalled();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(without >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fair_clock_never_runs_ahead),
        cmocka_unit_test(test_fair_clock_goes),
        cmocka_unit_test(test_bound_that_is_over_is_noticed),
        cmocka_unit_test(test_wait_that_is_not_met_ends),
        cmocka_unit_test(test_wait_that_is_met_ends_at_once),
        cmocka_unit_test(test_never_lasts_and_notices),
        cmocka_unit_test(test_too_soon_is_noticed),
        cmocka_unit_test(test_who_runs_is_not_asleep),
        cmocka_unit_test(test_fair_clock_stands_while_somebody_waits),
        cmocka_unit_test(test_what_was_stolen_is_counted),
        cmocka_unit_test(test_fair_clock_needs_no_descriptor),
    };

    if (!wait_is_fair())
        fprintf(stderr, "no " WAIT_PRESSURE ": bounds have a second more\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
