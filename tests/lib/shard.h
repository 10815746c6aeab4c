/*
 * A suite that takes long is cut into shards, which run side by side: as tests
 * of Meson's, each with a server of its own, or as children of one program, if
 * a server of its own costs too much. TEST_SHARD=I/N in the environment of a
 * program of test-lib chooses every N-th case of each of its groups, from the
 * I-th on (0 to N - 1). Each of them says how many cases it has of how many, so
 * that ./dev can see that none was left out. With TEST_LIST a program prints
 * the names of its cases instead.
 */
#ifndef TESTS_SHARD_H
#define TESTS_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct shard {
    unsigned index, of;
};

/* NULL means everything. False: the text names no shard. */
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

/* The shards as processes of their own, beside each other, in what the caller
 * has started for all of them. Prints what they print as the output of one
 * program. 0, or how many have failed. */
int shard_each(unsigned of, int (*run)(unsigned index));

#endif
