/*
 * A cleanup process waits until the runner ends, for whatever reason, and then
 * cleans up. It has a session of its own, so ^C does not reach it. The
 * supervisor becomes its parent when the runner is gone, and waits for it. The
 * runner calls these functions before it creates what must be removed.
 */
#ifndef HF_LAB_CLEANUP_H
#define HF_LAB_CLEANUP_H

#include <sys/types.h>

enum { CLEANUP_FAILED = 99 }; /* its exit status if it could not clean up */

/* Forks a process that calls clean(arg), with its copy of arg, once the runner
 * and all that it has forked have closed their ends of a socket, or died. Of
 * the runner's descriptors the process has only standard error. It must not
 * call lab_die(). clean() returns 0, or another value after printing what is
 * left. Returns the runner's end, for cleanup_end(). Dies if it cannot. */
int cleanup_start(int (*clean)(void *arg), void *arg);
/* The same, but the cleanup process has a child that calls run(arg), which must
 * end with exec or _exit. The child has a session of its own, and is killed
 * when the cleanup process dies. Before clean(arg) the cleanup process kills
 * the child and everything in its process group, and waits for them. Until then
 * the child is not reaped, so that its pid is not reused. */
int cleanup_run(void (*run)(void *arg), int (*clean)(void *arg), void *arg,
                pid_t *child);
/* Closes the end and waits until its process has cleaned up. */
void cleanup_end(int end);

/* Removes a directory with all that is in it. Returns 0, or -1: it is still
 * there. */
int cleanup_remove(const char *directory);

#endif
