/* Selects the cases of a shard. Every group of cases that a program runs comes
 * through here, because the program is linked with
 * --wrap=_cmocka_run_group_tests. */
#include "shard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

    if (getenv("TEST_LIST")) {
        for (size_t i = 0; i < len; i++)
            printf("%s\n", tests[i].name);
        return 0;
    }
    if (!shard_parse(text, &s)) {
        fprintf(stderr, "TEST_SHARD=%s is not a shard\n", text);
        return 1;
    }
    if (s.of == 1)
        return __real__cmocka_run_group_tests(name, tests, len, setup,
                                              teardown);
    return run_some(&s, name, tests, len, setup, teardown);
}

static pid_t start(unsigned index, unsigned of, FILE *out,
                   int (*run)(unsigned index))
{
    char text[32];
    int failed;
    pid_t parent = getpid(), pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(text, sizeof(text), "%u/%u", index, of);
    if (getppid() != parent || setenv("TEST_SHARD", text, 1) ||
        dup2(fileno(out), STDOUT_FILENO) < 0)
        _exit(1);
    failed = run(index) != 0;
    fflush(stdout);
    _exit(failed);
}

/* Prints the output of one process with its cases renumbered to follow those of
 * the processes before, and adds its number of planned cases to `plan`. */
static void merge(FILE *out, unsigned *number, unsigned *plan)
{
    char line[1024];
    unsigned n;

    rewind(out);
    while (fgets(line, sizeof(line), out)) {
        const char *title = strstr(line, " - ");
        bool ok = !strncmp(line, "ok ", 3);

        if (sscanf(line, "1..%u", &n) == 1)
            *plan += n;
        else if (title && (ok || !strncmp(line, "not ok ", 7)))
            printf("%s %u%s", ok ? "ok" : "not ok", ++*number, title);
        else
            fputs(line, stdout);
    }
    fflush(stdout);
}

int shard_each(unsigned of, int (*run)(unsigned index))
{
    FILE **out = calloc(of, sizeof(FILE *));
    pid_t *pid = calloc(of, sizeof(*pid));
    unsigned number = 0, plan = 0;
    int failed = out && pid ? 0 : 1;

    fflush(stdout);
    for (unsigned i = 0; i < of && !failed; i++) {
        out[i] = tmpfile();
        pid[i] = out[i] ? start(i, of, out[i], run) : -1;
        failed = pid[i] < 0;
    }
    for (unsigned i = 0; i < of && out && pid; i++) {
        int status = 0;

        if (pid[i] > 0)
            failed += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
        if (!out[i])
            continue;
        merge(out[i], &number, &plan);
        fclose(out[i]);
    }
    printf("1..%u\n", plan);
    free(out);
    free(pid);
    return failed;
}
