/* The hash functions FNV-1a of 32 and of 64 bits. `hash` is the hash of the
 * bytes that precede `text`, or the start value HF__HASH32 or HF__HASH64. */
#ifndef HF_HASH_H
#define HF_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HF__HASH32 2166136261u
#define HF__HASH64 14695981039346656037u

static inline uint32_t hf__hash32(uint32_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static inline uint64_t hf__hash64(uint64_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

#endif
