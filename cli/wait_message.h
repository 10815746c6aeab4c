/*
 * Prints on standard error who holds the lock, while hf_lock_acquire() waits. A
 * thread does that, so that the wait itself is one call, which keeps its place
 * in the queue. The thread reads the handles of the lock set. So it must be
 * joined before they are freed, and after hf_close().
 */
#ifndef HF_CLI_WAIT_MESSAGE_H
#define HF_CLI_WAIT_MESSAGE_H

#include "held_locks.h"

#include <holdfast.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The thread and what it prints. */
struct wait_message {
    const struct held_locks *held;
    hf_client *client;
    int64_t begun_at; /* CLOCK_BOOTTIME */

    pthread_t thread;
    bool started;
    pthread_mutex_t mu; /* guards the rest, and standard error meanwhile */
    pthread_cond_t changed;
    bool active, over, said;
    int inspect_after_s; /* between two requests to the server; -1: none */
};

/* Call them around each hf_lock_acquire(): nothing is printed after the second.
 * Both may be called when there is nothing to do (-q, -n). */
void wait_message_begin(struct wait_message *message);
void wait_message_pause(struct wait_message *message);
/* Ends the thread. Call it after the last hf_lock_acquire(). */
void wait_message_end(struct wait_message *message);
/* Call it after hf_close(), which ends a request of the thread. */
void wait_message_join(struct wait_message *message);

#endif
