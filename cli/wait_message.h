/*
 * Prints on standard error who holds the lock, while hf_lock_acquire() waits. A
 * separate thread prints, so that the wait itself is one call, which keeps its
 * place in the queue. The thread reads the handles of the lock set until
 * wait_message_end(), so the handles must not be freed before that. The thread
 * must be joined after hf_close().
 */
#ifndef HF_CLI_WAIT_MESSAGE_H
#define HF_CLI_WAIT_MESSAGE_H

#include "held_locks.h"

#include <holdfast.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The thread, and what it has printed. */
struct wait_message {
    const struct held_locks *held;
    hf_client *client;
    int64_t begun_at; /* CLOCK_BOOTTIME */

    pthread_t thread;
    bool started;
    pthread_mutex_t mu; /* guards the fields below, and the output on standard
                           error */
    pthread_cond_t changed;
    bool active, over, said;
    int inspect_after_s; /* seconds between two requests; -1: no request */
};

/* Call wait_message_begin() before each hf_lock_acquire(), and
 * wait_message_pause() after it. Nothing is printed after wait_message_pause().
 * Neither function has an effect if nothing must be printed (-q, -n). */
void wait_message_begin(struct wait_message *message);
void wait_message_pause(struct wait_message *message);
/* Makes the thread end. Call it after the last hf_lock_acquire(). */
void wait_message_end(struct wait_message *message);
/* Joins the thread. Call it after hf_close(), which ends a request of the
 * thread. */
void wait_message_join(struct wait_message *message);

#endif
