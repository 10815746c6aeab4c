/*
 * The library's clock: CLOCK_BOOTTIME, in nanoseconds. This clock also runs
 * while the machine is suspended. The core calls hf__now() directly; a module
 * calls it through hf__core.now.
 */
#ifndef HF_BASE_TIME_H
#define HF_BASE_TIME_H

#include <stdint.h>
#include <stdio.h>

typedef int64_t hf__time; /* CLOCK_BOOTTIME, nanoseconds */
#define HF__NEVER INT64_MAX
#define HF__MS 1000000LL

static inline hf__time hf__min_time(hf__time a, hf__time b)
{
    return a < b ? a : b;
}

hf__time hf__now(void);

/* A length of time as it is shown in a message: "250 ms" or, from one second
 * on, rounded to a tenth of a second, "4.5 s". */
struct hf__span {
    char text[24];
};

static inline struct hf__span hf__span(int64_t ms)
{
    int64_t tenths = (ms + 50) / 100;
    struct hf__span span;

    if (ms < 1000)
        snprintf(span.text, sizeof(span.text), "%d ms", (int)ms);
    else if (tenths % 10)
        snprintf(span.text, sizeof(span.text), "%lld.%d s",
                 (long long)(tenths / 10), (int)(tenths % 10));
    else
        snprintf(span.text, sizeof(span.text), "%lld s",
                 (long long)(tenths / 10));
    return span;
}

#endif
