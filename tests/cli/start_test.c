/*
 * Tests how `holdfast run` starts a command and guards it, at moments that real
 * processes reach only if they are stopped between two instructions. This
 * program has its own lock instead of the library's.
 */
#include "../../cli/shared/exit_code.h"
#include "../../cli/shared/values.h"
#include "../../cli/start_command.h"

#include "../lib/wait.h"
#include "../unit/cases.h"

#include <sys/wait.h>

static int hold; /* the result of held_locks_explain() */

int held_locks_explain(const struct held_locks *holds, size_t *which,
                       hf_error *why)
{
    return hold;
}

const char *hf_error_text(int code)
{
    return "fake";
}

static const struct cli_verb verb = {.name = "run"};

/* Starts a command that writes one byte into a pipe. Returns how many bytes
 * arrived, and sets *status to the result of command_start(). */
static ssize_t bytes_of_echo(int *status)
{
    struct command command = {.verb = &verb,
                              .argv = (char *[]){"sh", "-c", "echo >&9", NULL},
                              .terminal = {.fd = -1}};
    char bytes[16];
    int fds[2];
    ssize_t n;

    sigemptyset(&command.mask);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(dup2(fds[1], 9), 9);
    close(fds[1]);
    assert_int_equal(guardian_start(&command.guardian), 0);
    *status = command_start(&command, NULL);
    if (*status == CLI_OK)
        assert_int_equal(waitpid(command.pid, NULL, 0), command.pid);
    assert_true(command.pid > 0 || waitpid(-1, NULL, WNOHANG) == 0);
    guardian_stop(&command.guardian);
    close(9);
    n = read(fds[0], bytes, sizeof bytes); /* returns at once, as no writer is
                                              left */
    close(fds[0]);
    return n;
}

CASE(test_a_command_is_started_with_its_lock)
{
    int status;

    hold = HF_OK;
    assert_int_equal(bytes_of_echo(&status), 1);
    assert_int_equal(status, CLI_OK);
}

CASE(test_a_command_is_not_started_without_its_lock)
{
    int status;

    hold = HF_ELOST;
    assert_int_equal(bytes_of_echo(&status), 0);
    assert_int_equal(status, CLI_LOST);
}

/* Waits until the process is in one of the states, and returns that state: 'T'
 * stopped, 'S' asleep, 'Z' dead. */
static char wait_for_one_of(const char *states, pid_t pid)
{
    char state;

    assert_true(
        WAIT_FOR((state = wait_state(pid, pid)) != 0 && strchr(states, state)));
    return state;
}

/* Forks a process that sleeps in a process group of its own. A guardian joins
 * that group. */
static pid_t guarded_sleeper(struct guardian *guardian)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    assert_int_equal(setpgid(pid, pid), 0);
    assert_int_equal(guardian_start(guardian), 0);
    assert_int_equal(guardian_join(guardian, pid), 0);
    return pid;
}

static int status_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

CASE(test_a_guardian_ends_the_group_in_time)
{
    struct guardian guardian;
    pid_t pid = guarded_sleeper(&guardian);

    guardian_set_deadline(&guardian, cli_now_ns(CLOCK_BOOTTIME) + 1);
    assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
    guardian_stop(&guardian);
}

/* The guardian is stopped while a thousand renewals move the deadline. When it
 * continues, only the last deadline must count. */
CASE(test_a_stopped_guardian_keeps_to_the_newest_deadline)
{
    int64_t now = cli_now_ns(CLOCK_BOOTTIME);
    struct guardian guardian;
    pid_t pid = guarded_sleeper(&guardian);

    wait_for_one_of("S", guardian.pid);
    kill(guardian.pid, SIGSTOP);
    wait_for_one_of("T", guardian.pid);
    for (int i = 0; i < 1000; i++)
        guardian_set_deadline(&guardian, now + i);
    guardian_set_deadline(&guardian, now + 3600 * 1000000000LL);
    kill(guardian.pid, SIGCONT);
    assert_int_equal(wait_for_one_of("SZ", guardian.pid), 'S');
    assert_int_equal(wait_for_one_of("SZ", pid), 'S');
    guardian_stop(&guardian);
    kill(pid, SIGTERM);
    assert_int_equal(WTERMSIG(status_of(pid)), SIGTERM);
}

CASES_MAIN(NULL, NULL);
