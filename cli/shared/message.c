/* Parsing and messages; see cli.h. */
#include "../cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE_MAX_LEN = 1024 };

/* A line that is replaced later (screen.c) stands in the way; programs without
 * one have nothing to remove. */
void (*cli_before_a_line)(void);

/* One write, so that lines of several processes do not mix. */
static void say(const struct cli_verb *verb, const char *line)
{
    if (cli_before_a_line)
        cli_before_a_line();
    if (verb)
        fprintf(stderr, "holdfast %s: %s\n", verb->name, line);
    else
        fprintf(stderr, "holdfast: %s\n", line);
}

void cli_say(const struct cli_verb *verb, const char *fmt, ...)
{
    char line[LINE_MAX_LEN];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    say(verb, line);
}

/* From the colon in the quoted word to its end. */
static void hide_secret(char *line)
{
    char *colon = strchr(line + strcspn(line, "`"), ':');
    const char *end = strrchr(line, '\'');

    if (colon && !end)
        colon[1] = '\0'; /* the line was too long */
    else if (colon && colon < end)
        memmove(colon + 1, end, strlen(end) + 1);
}

void cli_misused(const struct cli_verb *verb, const char *fmt, ...)
{
    char line[LINE_MAX_LEN];
    size_t len;
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line - 64, fmt, args);
    va_end(args);
    hide_secret(line);
    len = strlen(line);
    snprintf(line + len, sizeof line - len, " (see `holdfast help%s%s')",
             verb ? " " : "", verb ? verb->name : "");
    say(verb, line);
}

int cli_exit_of(int code)
{
    switch (code) {
    case HF_OK:
        return CLI_OK;
    case HF_EBUSY:
    case HF_ETIMEDOUT:
    case HF_ECANCELED:
        return CLI_BUSY;
    case HF_ELOST:
        return CLI_LOST;
    case HF_ENOTOWNER:
        return CLI_FAILED;
    case HF_EINVAL:
    case HF_ENOTSUP:
    case HF_EMISMATCH:
    case HF_EDEADLK:
        return CLI_USAGE;
    case HF_EAUTH:
        return CLI_NOPERM;
    case HF_ENOMEM:
        return CLI_OSERR;
    default:
        return CLI_UNAVAILABLE;
    }
}

int cli_failed(const struct cli_verb *verb, const char *what, int code,
               const hf_error *err)
{
    const char *text = err && err->text[0] ? err->text : hf_error_text(code);

    cli_say(verb, "%s: %s", what, text);
    return cli_exit_of(code);
}

void cli_die_of(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    unsigned long long value;
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < min || value > max)
        return -1;
    *out = value;
    return 0;
}

const char *cli_url(const char *option)
{
    const char *env;

    if (option)
        return option;
    env = getenv("HOLDFAST_URL");
    return env && env[0] ? env : "shm:";
}

void cli_scheme(const char *url, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)strcspn(url, ":"), url);
}

int64_t cli_now_ns(int clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
