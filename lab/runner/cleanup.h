/*
 * A cleanup process waits until the runner ends, for whatever reason, and then
 * cleans up. It has its own session, so ^C does not reach it. When the runner
 * has ended, the supervisor becomes the parent of the cleanup process and waits
 * for it. The runner starts the cleanup process before anything is created that
 * must be removed.
 */
#ifndef HF_LAB_CLEANUP_H
#define HF_LAB_CLEANUP_H

#include <sys/types.h>

enum { CLEANUP_FAILED = 99 }; /* its exit status if it could not clean up */

/* Forks a cleanup process. The cleanup process keeps only standard error of the
 * runner's descriptors. It calls clean(arg), with its own copy of arg, after
 * the runner and all processes that the runner has forked have ended or closed
 * the runner's end of a socket. clean() must not call lab_die(). clean()
 * returns 0, or another value if something could not be removed; it may print
 * what is left. cleanup_start() returns the runner's end of the socket, for
 * cleanup_end(), and dies on failure. */
int cleanup_start(int (*clean)(void *arg), void *arg);
/* Does the same as cleanup_start(), but the cleanup process has a child that
 * calls run(arg), which must end with exec or _exit. The child has its own
 * session, and is killed when the cleanup process dies. Before clean(arg) the
 * cleanup process kills the child and everything in its process group, and
 * waits for them. Until then the child is not reaped, so that its pid is not
 * reused. Stores this pid in *child. */
int cleanup_run(void (*run)(void *arg), int (*clean)(void *arg), void *arg,
                pid_t *child);
/* Closes `end', the socket that cleanup_start() or cleanup_run() returned, and
 * waits until the cleanup process has cleaned up. */
void cleanup_end(int end);

/* Removes a directory with everything in it. Returns 0, or -1 if the directory
 * still exists after ten seconds. */
int cleanup_remove(const char *directory);

#endif
