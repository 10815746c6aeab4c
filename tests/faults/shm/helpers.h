/* Helpers for all programs in this folder. */
#ifndef SHM_HELPERS_H
#define SHM_HELPERS_H

#include <stdint.h>
#include <time.h>

static inline void nap_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}

/* Returns the next random number. */
static inline uint32_t chance(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*seed >> 33);
}

#endif
