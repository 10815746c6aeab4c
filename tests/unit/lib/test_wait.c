/* The clock and the waits that other tests use: they fail when they should. */
#include "../../lib/wait.h"
#include "../cases.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MS 1000000LL

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

CASE(test_fair_clock_never_runs_ahead)
{
    int64_t fair, now;

    for (int i = 0; i < 20; i++) {
        now = wait_now();
        fair = wait_fair();
        sleep_ms(5);
        fair = wait_fair() - fair;
        assert_true(fair <= wait_now() - now);
    }
}

/* Even on the busiest machine every process gets a processor at times, and then
 * the fair clock advances like the real one. The fair clock may go backwards
 * before that, because time that the host has stolen is counted once per
 * processor. */
CASE(test_fair_clock_goes)
{
    int64_t gone = 0, then, step;

    for (int i = 0; i < 16000 && gone <= 200 * MS; i++) {
        then = wait_fair();
        sleep_ms(5);
        step = wait_fair() - then;
        gone += step > 0 ? step : 0;
    }
    assert_true(gone > 200 * MS);
}

CASE(test_bound_that_is_over_is_noticed)
{
    int64_t long_ago = wait_fair() - (200 + WAIT_SLACK_MS + 1) * MS;

    assert_true(wait_within(wait_fair(), WAIT_LONG_MS));
    assert_false(wait_within(long_ago, 200));
}

CASE(test_wait_that_is_not_met_ends)
{
    int64_t began = wait_now();

    assert_false(WAIT_FOR_MS(false, 50));
    assert_true(wait_now() - began >= 50 * MS);
    assert_true(wait_now() - began < (50 + 2 * WAIT_LONG_MS) * MS);
}

CASE(test_wait_that_is_met_ends_at_once)
{
    int looks = 0;

    assert_true(WAIT_FOR(++looks == 3));
    assert_int_equal(looks, 3);
}

CASE(test_never_lasts_and_notices)
{
    int64_t began = wait_now();
    int looks = 0;

    assert_true(NEVER_MS(false, 50));
    assert_true(wait_now() - began >= 50 * MS);
    assert_false(NEVER_MS(++looks == 3, WAIT_LONG_MS));
    assert_int_equal(looks, 3);
}

CASE(test_too_soon_is_noticed)
{
    struct wait_mark began = wait_mark();

    sleep_ms(20);
    assert_true(wait_took(began, 20, WAIT_LONG_MS));
    assert_false(wait_took(began, 10 * WAIT_LONG_MS, 20 * WAIT_LONG_MS));
}

CASE(test_who_runs_is_not_asleep)
{
    assert_int_equal(wait_state(getpid(), getpid()), 'R');
    assert_int_equal(wait_state(getpid(), 1), getpid() == 1 ? 'R' : 0);
}

/* Forks a process that keeps this processor busy and uses no other. */
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

CASE(test_fair_clock_stands_while_somebody_waits)
{
    int64_t before = wait_stalled();
    int cpu = sched_getcpu();
    pid_t pid[] = {spin_on(cpu), spin_on(cpu)};
    bool rises = WAIT_FOR(wait_stalled() - before > 50 * MS);

    for (int i = 0; i < 2; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
    }
    assert_true(rises || !wait_is_fair());
}

CASE(test_what_was_stolen_is_counted)
{
    assert_true(wait_stolen() >= 0);
    assert_true(wait_stalled() >= wait_stolen());
}

/* The stall time must not fall back to 0 when its file cannot be opened: the
 * fair clock would jump, and a time limit of seconds would pass at once. */
CASE(test_fair_clock_needs_no_descriptor)
{
    struct rlimit old, none;
    int64_t before, without;

    assert_true(WAIT_FOR((before = wait_stalled()) > 0));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    sleep_ms(30); /* so that the pressure file is read again */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    without = wait_stalled();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(without >= before);
}

int main(void)
{
    if (!wait_is_fair())
        fprintf(stderr, "no " WAIT_PRESSURE ": bounds are a second longer\n");
    return run_cases(NULL, NULL);
}
