/* The one way out: lab_die(), in the runner and in what it has forked. */
#include "frame.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITING = -1 };

static struct lab_death *own_death; /* NULL: this is the runner */
static struct lab *runner_lab;

void death_in_runner(struct lab *lab)
{
    runner_lab = lab;
}

void death_in_child(struct lab_death *death, pid_t runner)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner)
        _exit(1); /* the runner is gone already */
    /* The runner is told, and ends us. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    own_death = death;
    progress_hide_after_fork();
}

/* What was said; 0: nothing. Another one may be about to say it. */
static int last_words(const struct lab_death *death)
{
    int status = atomic_load(&death->status);

    for (int i = 0; i < 1000 && status == WRITING; i++) {
        lab_sleep_ms(1);
        status = atomic_load(&death->status);
    }
    return status;
}

_Noreturn static void die_in_child(int status, const char *text)
{
    int alive = 0;

    /* The first of several threads, or of several workers, is told. */
    if (atomic_compare_exchange_strong(&own_death->status, &alive, WRITING)) {
        snprintf(own_death->text, sizeof own_death->text, "%s", text);
        atomic_store(&own_death->status, status);
    }
    last_words(own_death);
    _exit(1);
}

_Noreturn static void die_in_runner(int status, const char *text)
{
    const struct lab_scenario *scenario =
        runner_lab ? runner_lab->scenario : NULL;
    char name[64] = "lab";
    struct cli_verb verb = {.name = name};

    progress_clear();
    if (runner_lab)
        report_end(runner_lab);
    fflush(stdout);
    if (scenario)
        snprintf(name, sizeof name, "lab %s", scenario->name);
    cli_say(&verb, "%s", text);
    exit(status);
}

void death_by_signal(int number)
{
    progress_clear();
    report_end(runner_lab);
    if (runner_lab->html)
        cli_say(&lab_verb, "%s was not written", runner_lab->html);
    exit(128 + number);
}

void lab_die(int status, const char *fmt, ...)
{
    char text[LAB_DEATH_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (own_death)
        die_in_child(status, text);
    die_in_runner(status, text);
}

void death_of_child(const struct lab_death *death, const char *who,
                    int wait_status)
{
    int status = last_words(death);

    if (status > 0)
        lab_die(status, "%s: %s", who, death->text);
    if (WIFSIGNALED(wait_status))
        lab_die(CLI_OSERR, "%s was killed by signal %d", who,
                WTERMSIG(wait_status));
    lab_die(CLI_FAILED, "%s has ended too early (status %d)", who,
            WEXITSTATUS(wait_status));
}

void *lab_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        lab_die(CLI_OSERR, "no memory to share: %s", strerror(errno));
    return memory;
}

void lab_unshare(void *memory, size_t size)
{
    munmap(memory, size);
}

void *lab_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    if (!memory)
        lab_die(CLI_OSERR, "out of memory");
    return memory;
}

void *lab_grow(void *memory, size_t count, size_t size)
{
    void *more = reallocarray(memory, count, size);

    if (!more)
        lab_die(CLI_OSERR, "out of memory");
    return more;
}

int64_t lab_now(void)
{
    return cli_now_ns(CLOCK_MONOTONIC);
}

void lab_sleep_ms(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) < 0 && errno == EINTR) {
    }
}
