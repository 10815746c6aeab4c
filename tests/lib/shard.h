/*
 * A suite that takes long is cut into shards, which Meson runs side by side,
 * each with a server of its own: TEST_SHARD=I/N in the environment of a program
 * of test-lib chooses every N-th case of each of its groups, from the I-th on
 * (0 to N - 1). Each of them says how many cases it has of how many, so that
 * ./dev can see that none was left out.
 */
#ifndef TESTS_SHARD_H
#define TESTS_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct shard {
    unsigned index, of;
};

/* NULL stands for everything. False: the text names no shard. */
static inline bool shard_parse(const char *text, struct shard *s)
{
    int end = 0;

    *s = (struct shard){0, 1};
    return !text || (sscanf(text, "%u/%u%n", &s->index, &s->of, &end) == 2 &&
                     !text[end] && s->index < s->of);
}

static inline bool shard_has(const struct shard *s, size_t i)
{
    return i % s->of == s->index;
}

#endif
