/*
 * Watches a process from outside, by /proc: whether it was woken, whether it
 * runs now, and how much CPU it has used. A process that sleeps has no context
 * switches.
 */
#ifndef HF_LAB_PROC_STAT_H
#define HF_LAB_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { PROC_STAT_THREADS = 4 };

struct proc_stat {
    int fds[PROC_STAT_THREADS]; /* the status files of its threads */
    unsigned threads;
    clockid_t clock;
    uint64_t switches; /* their number at the last proc_stat_note() */
};

/* Watches the threads that it has now. Dies if it cannot be watched. */
void proc_stat_open(struct proc_stat *stat, pid_t pid);
/* proc_stat_was_woken() counts from now on. */
void proc_stat_note(struct proc_stat *stat);
/* Was it woken since? Sets *busy if it runs or is about to: it was woken, but
 * had no processor yet. Does not change *busy otherwise. */
bool proc_stat_was_woken(const struct proc_stat *stat, bool *busy);
/* CPU time of the process so far. */
double proc_stat_cpu_us(const struct proc_stat *stat);

/* Does any thread of the process run, or wait for a processor? */
bool proc_stat_runs(pid_t pid);

#endif
