/*
 * Waiting for a condition, never for a time. A wait looks every millisecond
 * and gives up after `ms`; what is asserted is that the condition came true.
 */
#ifndef TESTS_WAIT_H
#define TESTS_WAIT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Long enough for a loaded machine under a sanitizer; nobody waits that long
 * unless something is wrong. */
#define WAIT_LONG_MS 20000

static inline int64_t wait_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t wait_ms_since(int64_t then)
{
    return (wait_now() - then) / 1000000;
}

static inline void wait_tick(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* True as soon as cond is; false when it was not for that many ms. */
#define WAIT_FOR_MS(cond, ms)                                                  \
    ({                                                                         \
        int64_t wait_end = wait_now() + (int64_t)(ms)*1000000;                 \
        bool wait_met;                                                         \
                                                                               \
        while (!(wait_met = (cond)) && wait_now() < wait_end)                  \
            wait_tick();                                                       \
        wait_met;                                                              \
    })

#define WAIT_FOR(cond) WAIT_FOR_MS(cond, WAIT_LONG_MS)

/* The state letter of a thread in /proc, 0 if it is gone. */
static inline char wait_state(pid_t pid, pid_t tid)
{
    char path[64], text[512], *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    at = strrchr(text, ')');
    return at && at[1] ? at[2] : 0;
}

/* It sleeps, and did so at each of many looks in a row: whoever is on its way
 * into a wait has arrived there. */
static inline bool wait_asleep(pid_t pid, pid_t tid)
{
    int64_t end = wait_now() + WAIT_LONG_MS * (int64_t)1000000;
    int looks = 0;

    while (looks < 20 && wait_now() < end) {
        looks = wait_state(pid, tid) == 'S' ? looks + 1 : 0;
        wait_tick();
    }
    return looks == 20;
}

#endif
