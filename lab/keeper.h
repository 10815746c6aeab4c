/*
 * A keeper is a process that waits for the end of the runner, whatever that is,
 * and then cleans up. It is in a session of its own, so ^C does not reach it;
 * the supervisor, to which it falls when the runner is gone, waits for it.
 */
#ifndef HF_LAB_KEEPER_H
#define HF_LAB_KEEPER_H

/* Forks a keeper that calls clean(arg) when the runner and all that it has
 * forked have closed their ends of the pipe, or died. arg is what it was at
 * that moment. Returns the runner's end; closing it (in the runner, while no
 * actor lives) makes the keeper clean up now. Dies if it cannot. */
int keeper_start(void (*clean)(void *arg), void *arg);
/* Closes the end and waits until its keeper has cleaned up. */
void keeper_end(int end);

/* Removes a directory with all that is in it. */
void keeper_remove(const char *directory);

#endif
