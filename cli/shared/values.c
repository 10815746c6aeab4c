#include "values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
