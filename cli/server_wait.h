/*
 * Waits for the server, then for the locks. A failure that may pass
 * (hf_error.may_pass) does not end the wait: server_wait_open() and
 * server_wait_acquire() try again as long as -w allows, without limit if there
 * is no -w, and not at all with -n. Unless -q is given, one line on standard
 * error states the first of these failures. A signal that ends the process ends
 * the wait first.
 */
#ifndef HF_CLI_SERVER_WAIT_H
#define HF_CLI_SERVER_WAIT_H

#include "held_locks.h"
#include "lock_options.h"
#include "wait_message.h"

#include <holdfast.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct server_wait {
    const struct lock_options *options;
    int64_t begun_at; /* when the time of -w began, CLOCK_BOOTTIME */
    int64_t pause_ms; /* the length of the last pause */
    hf_error said;    /* the reason that was printed; empty text: none yet */
    bool only_try;    /* do not wait, as with -n */
};

/* The signal that ended the wait, or 0. */
extern volatile sig_atomic_t server_wait_caught;

/* Returns whether -w limits the wait and this error was already printed when
 * the wait for the server began. */
bool server_wait_has_reported(const struct server_wait *server_wait,
                              const hf_error *err);
/* Like hf_open(), but tries again. Signals keep their usual effect, because
 * there is nothing to undo yet. */
int server_wait_open(struct server_wait *server_wait, const char *url,
                     hf_client_options *options, hf_client **out,
                     hf_error *err);
/* Like hf_lock_acquire_all(), but tries again. A signal that would have ended
 * the process ends the wait first, so that the client leaves the queue. The
 * signals of server_wait_signals() are blocked when it returns. */
int server_wait_acquire(struct server_wait *server_wait,
                        const struct held_locks *held,
                        struct wait_message *message, hf_error *err);
/* Returns the signals that are blocked while a lock is held. */
void server_wait_signals(sigset_t *set);

#endif
