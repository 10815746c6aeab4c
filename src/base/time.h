/*
 * The library's clock: CLOCK_BOOTTIME in nanoseconds, which continues while the
 * machine is suspended. The core calls hf__now(); a module calls hf__core.now,
 * which is the same.
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
