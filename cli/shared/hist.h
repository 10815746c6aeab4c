/*
 * A histogram of durations, for percentiles of many measurements in little
 * memory. A histogram may be in shared memory; each histogram has one writer.
 */
#ifndef HF_CLI_HIST_H
#define HF_CLI_HIST_H

#include <stdint.h>

/* Each power of two of nanoseconds is divided into 32 buckets. */
enum { HIST_SUB = 32, HIST_BUCKETS = HIST_SUB * 36 };

struct hist {
    uint32_t count[HIST_BUCKETS];
};

/* Adds one measurement; a negative one counts as 0. */
void hist_add(struct hist *hist, int64_t ns);
/* Adds the counts of `from`. */
void hist_merge(struct hist *into, const struct hist *from);
/* Returns a quantile in microseconds: the value that the given share (0 to 1)
 * of all measurements does not exceed. */
double hist_quantile_us(const struct hist *hist, double share);

#endif
