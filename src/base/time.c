#include "base/time.h"

#include <time.h>

hf__time hf__now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (hf__time)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
