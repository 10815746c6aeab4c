/* Random numbers for uses that need no secrecy: xorshift64*. Pure; the caller
 * owns the state and seeds it with a number other than 0. */
#ifndef HF_CHANCE_H
#define HF_CHANCE_H

#include <stdint.h>

/* Returns a number from 0 to below - 1. *chance must not be 0, and never
 * becomes 0. */
static inline uint32_t hf__chance(uint64_t *chance, uint32_t below)
{
    *chance ^= *chance >> 12;
    *chance ^= *chance << 25;
    *chance ^= *chance >> 27;
    return (uint32_t)((*chance * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

#endif
