/*
 * Watches a process from outside, through /proc and the CPU clock of the
 * process: whether it was woken, whether it runs now, and how much CPU time it
 * has used. While a process sleeps, the number of its context switches does not
 * change.
 */
#ifndef HF_LAB_PROC_STAT_H
#define HF_LAB_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { PROC_STAT_THREADS = 4 };

struct proc_stat {
    int fds[PROC_STAT_THREADS]; /* status files of its threads */
    unsigned threads;
    clockid_t clock;
    uint64_t switches; /* voluntary switches at the last proc_stat_note() */
};

/* Begins to watch the threads that the process has now, at most
 * PROC_STAT_THREADS. Dies if that fails. */
void proc_stat_open(struct proc_stat *stat, pid_t pid);
/* Sets the moment from which proc_stat_was_woken() counts. */
void proc_stat_note(struct proc_stat *stat);
/* Returns whether the process was woken since proc_stat_note(). Sets *busy if
 * it runs now or waits for a processor; leaves *busy unchanged otherwise. */
bool proc_stat_was_woken(const struct proc_stat *stat, bool *busy);
/* Returns the CPU time that the process has used so far. */
double proc_stat_cpu_us(const struct proc_stat *stat);

/* Returns whether any thread of the process runs or waits for a processor. */
bool proc_stat_runs(pid_t pid);

#endif
