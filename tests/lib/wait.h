/*
 * Waiting for a condition, never for a fixed time. A wait checks its condition
 * every millisecond and gives up after `ms`; a test asserts that the condition
 * became true, or that it stayed false. Upper time limits are those of the
 * contract, measured by a fair clock. That clock stops while any thread on this
 * machine waits for a processor, and while this machine waits for a processor
 * of its host.
 */
#ifndef TESTS_WAIT_H
#define TESTS_WAIT_H

#include "cpu_wait.h"
#include "sanitized.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Long enough for a loaded machine under a sanitizer; only a failing test waits
 * for this long. */
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

#define WAIT_PRESSURE "/proc/pressure/cpu"

/* Returns whether the kernel reports how long threads wait for a processor. */
static inline bool wait_is_fair(void)
{
    return !access(WAIT_PRESSURE, R_OK);
}

/* What is added to every time limit. */
#define WAIT_SLACK_MS (SANITIZED || !wait_is_fair() ? 1000 : 20)

/* Reads the beginning of a file; stores "" if it cannot be read. */
static inline void wait_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Returns for how long the host has kept this machine's processors from
 * running, in ns, summed over all processors. */
static inline int64_t wait_stolen(void)
{
    char text[256];
    long long ticks = 0;

    wait_read("/proc/stat", text, sizeof(text));
    if (sscanf(text, "cpu %*s %*s %*s %*s %*s %*s %*s %lld", &ticks) != 1)
        return 0;
    return ticks * (1000000000 / sysconf(_SC_CLK_TCK));
}

/* Returns for how long since boot some thread on this machine has waited for a
 * processor, in ns, plus wait_stolen(). If the kernel does not report the waits
 * of all threads, the result includes only those of this process's first
 * thread. The kernel misses the waits between two reads of WAIT_PRESSURE within
 * a tick, so a thread reads it at most every 20 ms and in between gets its
 * previous value.
 * The value never falls: if no descriptor is free, the previous value is
 * returned. */
static inline int64_t wait_stalled(void)
{
    static _Thread_local int64_t looked_at, seen;
    char text[256];
    const char *total;
    int64_t stalled;

    if (looked_at && wait_now() - looked_at < 20 * 1000000)
        return seen;
    wait_read(WAIT_PRESSURE, text, sizeof(text));
    total = strstr(text, "total=");
    looked_at = wait_now();
    stalled = wait_stolen() +
              (total ? strtoll(total + strlen("total="), NULL, 10) * 1000
                     : cpu_wait_of_first(getpid()));
    if (stalled > seen)
        seen = stalled;
    return seen;
}

/* The time by the fair clock. */
static inline int64_t wait_fair(void)
{
    return wait_now() - wait_stalled();
}

/* Returns whether at most `ms` milliseconds (plus the slack) have passed by the
 * fair clock since `fair`, an earlier result of wait_fair(). */
static inline bool wait_within(int64_t fair, int64_t ms)
{
    return wait_fair() - fair <= (ms + WAIT_SLACK_MS) * 1000000;
}

/* One moment by both clocks. wait_took() measures the lower limit of a duration
 * by the real clock, and the upper limit by the fair clock. */
struct wait_mark {
    int64_t now, fair;
};

static inline struct wait_mark wait_mark(void)
{
    return (struct wait_mark){wait_now(), wait_fair()};
}

static inline bool wait_took(struct wait_mark since, int64_t least_ms,
                             int64_t most_ms)
{
    return wait_now() - since.now >= least_ms * 1000000 &&
           wait_within(since.fair, most_ms);
}

struct wait_bound {
    int64_t fair, ms;
    int64_t soonest, latest; /* by the real clock */
};

static inline struct wait_bound wait_begin(int64_t ms)
{
    int64_t soonest = wait_now() + ms * 1000000;

    return (struct wait_bound){.fair = wait_fair(),
                               .ms = ms,
                               .soonest = soonest,
                               .latest =
                                   soonest + WAIT_LONG_MS * INT64_C(1000000)};
}

static inline bool wait_over(const struct wait_bound *b)
{
    int64_t now = wait_now();

    return now >= b->latest ||
           (now >= b->soonest && !wait_within(b->fair, b->ms));
}

/* Evaluates to true as soon as cond is true, and to false if cond has not
 * become true within `ms`. */
#define WAIT_FOR_MS(cond, ms)                                                  \
    ({                                                                         \
        struct wait_bound wait_bound = wait_begin(ms);                         \
        bool wait_met;                                                         \
                                                                               \
        while (!(wait_met = (cond)) && !wait_over(&wait_bound))                \
            wait_tick();                                                       \
        wait_met;                                                              \
    })

/* Evaluates to false as soon as cond is true, and to true if cond has stayed
 * false for `ms`. */
#define NEVER_MS(cond, ms)                                                     \
    ({                                                                         \
        int64_t wait_end = wait_now() + (int64_t)(ms)*1000000;                 \
        bool wait_met;                                                         \
                                                                               \
        while (!(wait_met = (cond)) && wait_now() < wait_end)                  \
            wait_tick();                                                       \
        !wait_met;                                                             \
    })

#define WAIT_FOR(cond) WAIT_FOR_MS(cond, WAIT_LONG_MS)

/* Returns the state letter of a thread from /proc, or 0 if the thread does not
 * exist. */
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

/* Waits until the thread has been asleep at each of many checks in a row, which
 * shows that it has begun to wait. A check counts less if any thread waited for
 * a processor since the check before, because that thread might be about to
 * wake the sleeper. Returns false if the thread has ended, or did not stay
 * asleep within WAIT_LONG_MS. */
static inline bool wait_asleep(pid_t pid, pid_t tid)
{
    enum { ENOUGH = 20, BUSY = 3 };
    int64_t end = wait_now() + WAIT_LONG_MS * (int64_t)1000000;
    int64_t stalled = wait_stalled(), now;
    char state = 'S';
    int looks = 0;

    while (looks < BUSY * ENOUGH && state && wait_now() < end) {
        now = wait_stalled();
        looks += now == stalled && wait_is_fair() ? BUSY : 1;
        stalled = now;
        state = wait_state(pid, tid);
        if (state != 'S')
            looks = 0;
        wait_tick();
    }
    return looks >= BUSY * ENOUGH;
}

#endif
