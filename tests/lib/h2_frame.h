/* The header of an HTTP/2 frame, for servers that build their frames
 * themselves. */
#ifndef TESTS_H2_FRAME_H
#define TESTS_H2_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define H2_HEAD 9

static inline void h2_head(uint8_t *to, uint8_t type, uint8_t flags, int32_t id,
                           size_t len)
{
    to[0] = (uint8_t)(len >> 16);
    to[1] = (uint8_t)(len >> 8);
    to[2] = (uint8_t)len;
    to[3] = type;
    to[4] = flags;
    for (int i = 0; i < 4; i++)
        to[5 + i] = (uint8_t)(id >> (24 - 8 * i));
}

#endif
