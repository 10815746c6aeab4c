/* What every fuzzer needs: a check that aborts, and a main program for
 * compilers that have no fuzzer. */
#ifndef FUZZ_MAIN_H
#define FUZZ_MAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool held, const char *what)
{
    if (held)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

#ifdef PLAIN_MAIN
static uint64_t chance;

static uint32_t draw(size_t below)
{
    chance ^= chance << 13; /* xorshift64 */
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)((chance >> 32) % below);
}

struct fuzzer {
    size_t cases;
    long times; /* number of inputs per case, unless the command line gives
                   one */
    /* Generates an input for a case in at most 2048 bytes; returns its
     * length. */
    size_t (*make)(uint8_t *to, size_t which);
    const char *title;
    const char *const *titles; /* the end of each case's title, or NULL */
};

/* The main program of a fuzzer. The command line is [TIMES [SEED]]: the number
 * of inputs per case, and the seed of the first case. Prints TAP. */
static int run_fuzzer(const struct fuzzer *f, int argc, char **argv)
{
    long times = argc > 1 ? atol(argv[1]) : f->times;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20260101;
    uint8_t buf[2048];

    printf("1..%zu\n", f->cases);
    for (size_t i = 0; i < f->cases; i++, seed++) {
        for (long n = 0; n < times; n++) {
            chance = (seed + (uint64_t)n * 0x9e3779b97f4a7c15u) | 1;
            /* This line tells how to reproduce an abort that comes later. */
            if (n % 500 == 0)
                printf("# seed %llu, %ld\n", (unsigned long long)seed, n);
            LLVMFuzzerTestOneInput(buf, f->make(buf, i));
        }
        printf("ok %zu - %ld %s%s\n", i + 1, times, f->title,
               f->titles ? f->titles[i] : "");
        fflush(stdout);
    }
    return 0;
}
#endif

#endif
