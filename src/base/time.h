/*
 * The library's clock: nanoseconds of CLOCK_BOOTTIME, which goes on while the
 * machine is suspended. hf__now() is the core's; a module gets the same as
 * hf__core.now.
 */
#ifndef HF_BASE_TIME_H
#define HF_BASE_TIME_H

#include <stdint.h>

typedef int64_t hf__time; /* CLOCK_BOOTTIME, nanoseconds */
#define HF__NEVER INT64_MAX
#define HF__MS 1000000LL

static inline hf__time hf__min_time(hf__time a, hf__time b)
{
    return a < b ? a : b;
}

hf__time hf__now(void);

#endif
