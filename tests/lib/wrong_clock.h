/* Makes this process's wall clock wrong. */
#ifndef TESTS_WRONG_CLOCK_H
#define TESTS_WRONG_CLOCK_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t wrong_by; /* atomic: error of the clock, in seconds */

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
                                                         struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);

    if (!rc && id == CLOCK_REALTIME)
        ts->tv_sec += __atomic_load_n(&wrong_by, __ATOMIC_RELAXED);
    return rc;
}

/* Makes the wall clock wrong by that many seconds. */
static inline void clock_is_wrong_by(time_t s)
{
    __atomic_store_n(&wrong_by, s, __ATOMIC_RELAXED);
}

#endif
