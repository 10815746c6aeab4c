/*
 * The lock set of `run' and `hold': acquires the locks that the options
 * describe, and releases them. It owns the client and the handles. The caller
 * fills in options, mask and nested, and calls lock_set_acquire(). Whatever
 * lock_set_acquire() returns, the caller calls lock_set_close() at the end.
 * Each function prints the reason before it returns a failure.
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
    struct nested nested; /* filled in by nested_find() */
    sigset_t mask;        /* signals that were blocked at the start */
    hf_client *client;
    struct held_locks held;
    struct server_wait server_wait;
    struct wait_message message;
};

/* Connects and acquires the locks. Returns true if all locks are held; the
 * signals of server_wait_signals() are then blocked. Otherwise prints the
 * reason and returns false; *status is then the exit status. Call
 * lock_set_close() in both cases. */
bool lock_set_acquire(struct lock_set *locks, int *status);
/* Releases the locks and prints what went wrong. Returns the exit status:
 * CLI_LOST if a lock turns out to be lost, unless only_warn is set; otherwise
 * `status'. */
int lock_set_release(struct lock_set *locks, int status, bool only_warn);
/* Frees the handles, closes the client, and joins the thread of
 * wait_message.h. */
void lock_set_close(struct lock_set *locks);

#endif
