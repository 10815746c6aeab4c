/*
 * The clock of rows and timelines, and sleeping by it.
 */
#ifndef HF_LAB_CLOCK_H
#define HF_LAB_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, ns: for times in rows and timelines. */
int64_t lab_now(void);
void lab_sleep_ms(int64_t ms);

#endif
