#include "die.h"

#include "../../cli/shared/exit_code.h"
#include "../../cli/shared/message.h"
#include "../../cli/shared/verb.h"
#include "clock.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITING = -1 };

static struct die_words *own_words; /* NULL in the runner */
static struct {
    void (*finish)(struct lab *lab, int number, char name[DIE_NAME_MAX]);
    struct lab *lab;
} runner;

void die_set_finish(void (*finish)(struct lab *lab, int number,
                                   char name[DIE_NAME_MAX]),
                    struct lab *lab)
{
    runner.finish = finish;
    runner.lab = lab;
}

void die_in_child(struct die_words *words, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* the runner has already ended */
    /* A ^C reaches the runner, too, which then ends this process. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    own_words = words;
}

/* Returns the exit status that was left with the message, or 0 if there is
 * none. While another thread or process writes the message, waits for about a
 * second. */
static int die_last_words(const struct die_words *words)
{
    int status = atomic_load(&words->status);

    for (int i = 0; i < 1000 && status == WRITING; i++) {
        lab_sleep_ms(1);
        status = atomic_load(&words->status);
    }
    return status;
}

_Noreturn static void die_end_child(int status, const char *text)
{
    int alive = 0;

    /* If several threads or workers fail, the first failure is reported. */
    if (atomic_compare_exchange_strong(&own_words->status, &alive, WRITING)) {
        snprintf(own_words->text, sizeof own_words->text, "%s", text);
        atomic_store(&own_words->status, status);
    }
    die_last_words(own_words);
    _exit(1);
}

_Noreturn static void die_end_runner(int status, const char *text)
{
    char name[DIE_NAME_MAX] = "lab";
    struct cli_verb verb = {.name = name};

    if (runner.finish)
        runner.finish(runner.lab, 0, name);
    fflush(stdout);
    cli_say(&verb, "%s", text);
    exit(status);
}

void die_by_signal(int number)
{
    char name[DIE_NAME_MAX];

    runner.finish(runner.lab, number, name);
    exit(128 + number);
}

void lab_die(int status, const char *fmt, ...)
{
    char text[DIE_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (own_words)
        die_end_child(status, text);
    die_end_runner(status, text);
}

void die_of_child(const struct die_words *words, const char *who,
                  int wait_status)
{
    int status = die_last_words(words);

    if (status > 0)
        lab_die(status, "%s: %s", who, words->text);
    if (WIFSIGNALED(wait_status))
        lab_die(CLI_OSERR, "%s was killed by signal %d", who,
                WTERMSIG(wait_status));
    lab_die(CLI_FAILED, "%s has ended too early (status %d)", who,
            WEXITSTATUS(wait_status));
}
