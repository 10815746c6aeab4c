/*
 * The supervisor, the first process of the lab, and the runner, its child,
 * which does the work. The supervisor waits until every process that the runner
 * leaves behind has ended, however the runner ends.
 */
#ifndef HF_LAB_SUPERVISOR_H
#define HF_LAB_SUPERVISOR_H

struct lab;

/* Records the command line and a description of this machine, for the page. */
void lab_describe(struct lab *lab, int argc, char **argv);
/* Forks the runner, which calls run(lab) and then writes the page. Returns the
 * exit status once all forked processes have ended. */
int lab_supervise(struct lab *lab, void (*run)(struct lab *lab));

#endif
