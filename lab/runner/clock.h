/*
 * The clock of rows and timelines, and sleeping.
 */
#ifndef HF_LAB_CLOCK_H
#define HF_LAB_CLOCK_H

#include <stdint.h>

/* Returns CLOCK_MONOTONIC in ns, for times in rows and timelines. */
int64_t lab_now(void);
void lab_sleep_ms(int64_t ms);

#endif
