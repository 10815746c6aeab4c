/*
 * Locks of one client that are held together, and questions about all of them
 * at once. The lock set owns the handles. No function here blocks.
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

/* hf_lock_explain() for the first lock that is lost, whose index is returned in
 * *which. HF_OK: all are held; why->text then describes trouble with the
 * server, if there is any. */
int held_locks_explain(const struct held_locks *held, size_t *which,
                       hf_error *why);
/* The earliest deadline, and the lock that has it. Returns what
 * hf_lock_deadline() returns. */
int held_locks_deadline(const struct held_locks *held, size_t *which,
                        int64_t *deadline);
/* Releases all locks, without waiting for the answers. */
void held_locks_release_nowait(const struct held_locks *held);
/* A descriptor that becomes readable when another client may have asked for a
 * lock (`holdfast ask'); -1 where the backend cannot pass that on. When it is
 * readable, held_locks_say_asked() prints the message. */
int held_locks_asked_fd(const struct held_locks *held);
void held_locks_say_asked(const struct held_locks *held);

#endif
