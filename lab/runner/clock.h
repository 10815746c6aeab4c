/*
 * The clock of rows and timelines, and sleeping by it.
 */
#ifndef HF_LAB_CLOCK_H
#define HF_LAB_CLOCK_H

#include <stdint.h>

int64_t lab_now(void); /* CLOCK_MONOTONIC, ns: of rows' times and timelines */
void lab_sleep_ms(int64_t ms);

#endif
