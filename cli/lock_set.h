/*
 * The lock set of `run' and `hold': from options to locks that are held, and
 * back. It owns the client and the handles. The caller fills in options, mask
 * and nested, and calls lock_set_acquire(). Whatever that returns, the caller
 * calls lock_set_close() at the end. Each function prints the reason before it
 * returns a failure.
 */
#ifndef HF_CLI_LOCK_SET_H
#define HF_CLI_LOCK_SET_H

#include "held_locks.h"
#include "lock_options.h"
#include "nested.h"
#include "server_wait.h"
#include "wait_message.h"

#include <holdfast.h>
#include <signal.h>
#include <stdbool.h>

struct lock_set {
    const struct lock_options *options;
    struct nested nested; /* by nested_find() */
    sigset_t mask;        /* signals that were blocked when we were started */
    hf_client *client;
    struct held_locks held;
    struct server_wait server_wait;
    struct wait_message message;
};

/* Connects and acquires. True: all locks are held, and server_wait_signals()
 * are blocked. False: *status is the exit status, and the reason was printed.
 * Call lock_set_close() in both cases. */
bool lock_set_acquire(struct lock_set *locks, int *status);
/* Releases the locks. Returns the exit status: `status', or CLI_LOST (not if
 * only_warn) if they turn out to be lost. Prints what went wrong. */
int lock_set_release(struct lock_set *locks, int status, bool only_warn);
/* Frees the handles, closes the client, and joins the thread of the message. */
void lock_set_close(struct lock_set *locks);

#endif
