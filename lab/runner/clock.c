#include "clock.h"

#include "../../cli/shared/values.h"

#include <errno.h>
#include <time.h>

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
