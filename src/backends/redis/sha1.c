/* SHA-1, because that is how EVALSHA names a script. Nothing rests on its
 * strength: the server compares nothing but names by it. */
#include "redis.h"

#include <stdio.h>
#include <string.h>

static uint32_t rol(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f, t;

        if (i < 20)
            f = ((b & c) | (~b & d)) + 0x5a827999;
        else if (i < 40)
            f = (b ^ c ^ d) + 0x6ed9eba1;
        else if (i < 60)
            f = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
        else
            f = (b ^ c ^ d) + 0xca62c1d6;
        t = rol(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = rol(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void hf__rd_sha1_hex(const char *text, size_t len, char hex[41])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                     0xc3d2e1f0};
    unsigned char last[128] = {0};
    size_t rest = len % 64, end = rest < 56 ? 64 : 128;

    for (size_t i = 0; i + 64 <= len; i += 64)
        block(h, (const unsigned char *)text + i);
    memcpy(last, text + len - rest, rest);
    last[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[end - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
    block(h, last);
    if (end == 128)
        block(h, last + 64);
    for (int i = 0; i < 5; i++)
        snprintf(hex + 8 * i, 9, "%08x", h[i]);
}
