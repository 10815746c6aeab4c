/* A histogram of nanoseconds, with an error of at most 3 % at any size. */
#include "hist.h"

#include <stddef.h>

static size_t hist_bucket_of(uint64_t ns)
{
    unsigned shift;
    size_t bucket;

    if (ns < 2 * HIST_SUB)
        return (size_t)ns;
    shift = 63U - (unsigned)__builtin_clzll(ns) - 5;
    bucket = (size_t)shift * HIST_SUB + (size_t)(ns >> shift);
    return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

/* Returns the middle of a bucket, in nanoseconds. */
static double hist_value_of(size_t bucket)
{
    size_t shift;

    if (bucket < 2 * HIST_SUB)
        return (double)bucket;
    shift = bucket / HIST_SUB - 1;
    return ((double)(bucket % HIST_SUB + HIST_SUB) + 0.5) *
           (double)(1ULL << shift);
}

void hist_add(struct hist *hist, int64_t ns)
{
    hist->count[hist_bucket_of(ns < 0 ? 0 : (uint64_t)ns)]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    for (size_t i = 0; i < HIST_BUCKETS; i++)
        into->count[i] += from->count[i];
}

double hist_quantile_us(const struct hist *hist, double share)
{
    uint64_t all = 0, seen = 0;

    for (size_t i = 0; i < HIST_BUCKETS; i++)
        all += hist->count[i];
    for (size_t i = 0; i < HIST_BUCKETS; i++) {
        seen += hist->count[i];
        if (seen > 0 && (double)seen >= share * (double)all)
            return hist_value_of(i) / 1000;
    }
    return 0;
}
