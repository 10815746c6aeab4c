/*
 * Watches a process from outside, by /proc: was it woken, does it run now, how
 * much CPU has it used? A process that sleeps has no context switches.
 */
#ifndef HF_LAB_SIGHT_H
#define HF_LAB_SIGHT_H

#include "../lab.h"

#include <time.h>

enum { SIGHT_THREADS = 4 };

struct sight {
    int fds[SIGHT_THREADS]; /* of the status of its threads */
    unsigned threads;
    clockid_t clock;
    uint64_t switches; /* when it was last noted */
};

/* Of the threads that it has now. Dies if it cannot be watched. */
void sight_open(struct sight *sight, pid_t pid);
/* From now on it is to be told whether the process was woken. */
void sight_note(struct sight *sight);
/* Was it woken since? *busy becomes true if it runs, or is about to: it has
 * been woken, but had no processor yet. Else *busy is left alone. */
bool sight_was_woken(const struct sight *sight, bool *busy);
double sight_cpu_us(const struct sight *sight);

/* Does any thread of the process run, or is about to? */
bool sight_runs(pid_t pid);

#endif
