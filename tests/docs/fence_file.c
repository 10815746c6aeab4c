/* Tests the code of docs/fencing.md that guards a file by tokens; the build
 * extracts that code from the page. */
#include "fence_file_snippet.h"

#include "../unit/cases.h"

#include <poll.h>
#include <sys/wait.h>

static char dir[64];
static char path[96];

static int fresh(void **state)
{
    strcpy(dir, "/tmp/holdfast-fence-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/data.token", dir);
    return 0;
}

static int tidy(void **state)
{
    unlink(path);
    return rmdir(dir);
}

/* Enters the file with fence_enter() and leaves it. Returns 0, or the errno of
 * the refusal. */
static int contact(uint64_t token)
{
    int fd = fence_enter(path, token);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

CASE_AROUND(test_file_refuses_a_lower_token, fresh, tidy)
{
    assert_int_equal(contact(33), 0);
    assert_int_equal(contact(34), 0);
    assert_int_equal(contact(33), ESTALE);
    assert_int_equal(contact(34), 0);
}

CASE_AROUND(test_file_accepts_an_equal_token, fresh, tidy)
{
    assert_int_equal(contact(33), 0);
    assert_int_equal(contact(33), 0);
}

CASE_AROUND(test_file_compares_all_of_the_token, fresh, tidy)
{
    assert_int_equal(contact(9), 0);
    assert_int_equal(contact(10), 0);
    assert_int_equal(contact(9), ESTALE);
    assert_int_equal(contact(UINT64_MAX), 0);
    assert_int_equal(contact(UINT64_MAX - 1), ESTALE);
}

CASE_AROUND(test_file_bar_stays_when_its_process_is_killed, fresh, tidy)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        fence_enter(path, 34);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(contact(33), ESTALE);
    assert_int_equal(contact(34), 0);
}

CASE_AROUND(test_file_lets_nobody_in_during_a_contact, fresh, tidy)
{
    struct pollfd told = {.events = POLLIN};
    int start[2] = {-1, -1}, end[2] = {-1, -1}, fd, status;
    char result = -1;
    pid_t pid;

    assert_int_equal(pipe(start) || pipe(end), 0);
    pid = fork(); /* forks before fence_enter(), so that the child does not
                     inherit the descriptor */
    if (pid == 0) {
        if (read(start[0], &result, 1) == 1)
            result = (char)contact(34);
        _exit(write(end[1], &result, 1) != 1);
    }
    fd = fence_enter(path, 33);
    assert_true(fd >= 0);
    assert_int_equal(write(start[1], "", 1), 1);
    told.fd = end[0];
    assert_int_equal(poll(&told, 1, 100), 0); /* the child waits */
    close(fd);
    assert_int_equal(read(end[0], &result, 1), 1);
    assert_int_equal(result, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(contact(33), ESTALE);
    for (int i = 0; i < 2; i++) {
        close(start[i]);
        close(end[i]);
    }
}

static void put(const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
}

CASE_AROUND(test_file_that_is_damaged_lets_nobody_in, fresh, tidy)
{
    static const char *const bad[] = {
        "7\n",
        "0000000000000000003",
        "0000000000000000003x\n",
        "00000000000000000033\n\n",
        "-0000000000000000033\n",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(bad[i], strlen(bad[i]));
        assert_int_equal(contact(UINT64_MAX), EBADMSG);
    }
}

CASE(test_file_that_cannot_be_opened_lets_nobody_in)
{
    assert_int_equal(fence_enter("/nowhere/data.token", 33), -1);
    assert_int_equal(errno, ENOENT);
}

CASES_MAIN(NULL, NULL);
