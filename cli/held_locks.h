/*
 * The locks of one client that are held together, and functions on all of them
 * at once. The lock set (lock_set.h) owns the handles. No function here blocks.
 */
#ifndef HF_CLI_HELD_LOCKS_H
#define HF_CLI_HELD_LOCKS_H

#include "lock_options.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Locks that are held together, in the order in which they were typed. */
struct held_locks {
    const struct lock_options *options;
    hf_client *client;
    hf_part parts[LOCKS_MAX];
    size_t len;
};

/* Returns the result of hf_lock_explain() for the first lock that is lost, and
 * its index in *which. Returns HF_OK if all are held; why->text then describes
 * trouble with the server, if there is any. Both `which' and `why' may be
 * NULL. */
int held_locks_explain(const struct held_locks *held, size_t *which,
                       hf_error *why);
/* Returns the earliest deadline in *deadline, and in *which the index of the
 * lock with that deadline, unless `which' is NULL. Fails with the code of
 * hf_lock_deadline(). */
int held_locks_deadline(const struct held_locks *held, size_t *which,
                        int64_t *deadline);
/* Releases all locks, without waiting for the answers. */
void held_locks_release_nowait(const struct held_locks *held);
/* Returns a descriptor that becomes readable when another client may have asked
 * for a lock (`holdfast ask'), or -1 if the backend cannot pass on such
 * requests. When it is readable, held_locks_say_asked() prints the message. */
int held_locks_asked_fd(const struct held_locks *held);
void held_locks_say_asked(const struct held_locks *held);

#endif
