/*
 * A long suite is split into shards that run in parallel: as Meson tests with a
 * server each, or as children of one program if a server for each would cost
 * too much. TEST_SHARD=I/N in the environment of a program that uses test-lib
 * selects every N-th case of each group, from the I-th on (0 to N - 1). Each
 * shard prints how many of all cases it runs, so that ./dev can check that none
 * was left out. If TEST_LIST is set, a program prints the names of its cases
 * instead.
 */
#ifndef TESTS_SHARD_H
#define TESTS_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct shard {
    unsigned index, of;
};

/* Parses I/N; a text of NULL means all cases. Returns false if the text is not
 * a shard. */
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

/* Runs the shards as parallel child processes, which share what the caller has
 * started. Prints their output as that of one program. Returns the number of
 * shards that failed. */
int shard_each(unsigned of, int (*run)(unsigned index));

#endif
