/* What src/net needs to run without a client: a core that allocates memory and
 * discards all log lines and error messages. */
#ifndef TESTS_BARE_CORE_H
#define TESTS_BARE_CORE_H

#include "backends/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static hf__time clock_ns = 1000 * HF__MS; /* 0 selects the machine's clock */
static unsigned allocations;
static unsigned fail_in; /* which of the next allocations fails: 1 for the
                            first, 0 for none */

static hf__time now(void)
{
    struct timespec ts;

    if (clock_ns)
        return clock_ns;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * 1000 * HF__MS + ts.tv_nsec;
}

static int random_bytes(void *buf, size_t len)
{
    memset(buf, 7, len);
    return 0;
}

static void *take(hf_client *client, size_t size)
{
    (void)client;
    allocations++;
    return fail_in && --fail_in == 0 ? NULL : calloc(1, size);
}

static void give(hf_client *client, void *p)
{
    (void)client;
    free(p);
}

static void write_text(const char *fmt, va_list ap)
{
    char text[512];

    vsnprintf(text, sizeof(text), fmt, ap);
}

static void note(hf_client *client, const char *fmt, ...)
{
    va_list ap;

    (void)client;
    va_start(ap, fmt);
    write_text(fmt, ap);
    va_end(ap);
}

static int why(hf_client *client, int code, const char *fmt, ...)
{
    va_list ap;

    (void)client;
    va_start(ap, fmt);
    write_text(fmt, ap);
    va_end(ap);
    return code;
}

static uint32_t watched; /* events watched on the only descriptor */

static int watch(hf_client *client, int fd, uint32_t events, uint32_t tag)
{
    (void)client;
    (void)fd;
    (void)tag;
    watched = events;
    return 0;
}

static void due(hf_client *client, hf__time at)
{
    (void)client;
    (void)at;
}

static const struct hf__core core = {.now = now,
                                     .random = random_bytes,
                                     .alloc = take,
                                     .free = give,
                                     .log = note,
                                     .why = why,
                                     .lasts = why,
                                     .watch = watch,
                                     .due = due};

#endif
