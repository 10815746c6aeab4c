/* Prints what a program of the soak has done, as a line for tests/soak/soak.py.
 * If there are several such lines, the last one counts. */
#ifndef TESTS_TALLY_H
#define TESTS_TALLY_H

#include <stdint.h>
#include <stdio.h>

struct tally_line {
    uint64_t grants, kills, stops;
    uint64_t faults; /* number of faults of servers, network and memory */
    uint64_t violations;
};

static inline void tally_line_print(const struct tally_line *t)
{
    printf("# tally: %llu grants, %llu kills, %llu stops, %llu faults, %llu "
           "violations\n",
           (unsigned long long)t->grants, (unsigned long long)t->kills,
           (unsigned long long)t->stops, (unsigned long long)t->faults,
           (unsigned long long)t->violations);
    fflush(stdout);
}

#endif
