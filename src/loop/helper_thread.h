/*
 * The one helper thread of a client. It opens and closes the backend, and in
 * between does what no other thread is doing: timers, renewals, the answers to
 * what no thread waits for. core/wakeup.h says how to wake it.
 */
#ifndef HF_HELPER_THREAD_H
#define HF_HELPER_THREAD_H

#include "base/time.h"

#include <holdfast.h>
#include <stdbool.h>

/* Starts it and opens the backend. *given_up: that is not over yet, and the
 * client is the thread's now. */
int hf__helper_start(hf_client *, hf__time until, hf_error *, bool *given_up);
void hf__helper_stop(hf_client *);

#endif
