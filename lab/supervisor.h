/*
 * The supervisor, the first process of the lab, and the runner, its child,
 * which does the work. The supervisor waits until everything that the runner
 * leaves behind is gone, however the runner ends.
 */
#ifndef HF_LAB_SUPERVISOR_H
#define HF_LAB_SUPERVISOR_H

struct lab;

/* For the page: what was typed, and where it runs. */
void lab_describe(struct lab *lab, int argc, char **argv);
/* Runs it in the runner, then writes the page. Returns the exit status once all
 * forked processes are gone. */
int lab_supervise(struct lab *lab, void (*run)(struct lab *lab));

#endif
