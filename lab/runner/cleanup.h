/*
 * A cleanup process waits for the end of the runner, whatever that is, and then
 * cleans up. It is in a session of its own, so ^C does not reach it; the
 * supervisor, which becomes its parent when the runner is gone, waits for it.
 * The runner calls these functions, before it makes what has to be removed.
 */
#ifndef HF_LAB_CLEANUP_H
#define HF_LAB_CLEANUP_H

#include <sys/types.h>

enum { CLEANUP_FAILED = 99 }; /* its exit status if it could not clean up */

/* Forks a process that calls clean(arg) when the runner and all that it has
 * forked have closed their ends of a socket, or died. arg is what it was at
 * that moment. The process has none of the runner's descriptors but standard
 * error, and must not call lab_die(). clean() returns 0, or something else
 * after having said what is left. Returns the runner's end, for cleanup_end().
 * Dies if it cannot. */
int cleanup_start(int (*clean)(void *arg), void *arg);
/* The same, and the cleanup process has a child that calls run(arg), which has
 * to end with exec or _exit. The child has a session of its own, and is killed
 * when the cleanup process dies; before clean(arg) the cleanup process kills
 * the child and everything in its process group, and waits for them. Until then
 * the child is not reaped: its pid stays its own. */
int cleanup_run(void (*run)(void *arg), int (*clean)(void *arg), void *arg,
                pid_t *child);
/* Closes the end and waits until its process has cleaned up. */
void cleanup_end(int end);

/* Removes a directory with all that is in it. 0, or -1: it is still there. */
int cleanup_remove(const char *directory);

#endif
