/*
 * The one helper thread of a client. It opens and closes the backend. In
 * between it does what no other thread does: timers, renewals, and answers that
 * no thread waits for. core/wakeup.h declares the functions that wake it.
 */
#ifndef HF_HELPER_THREAD_H
#define HF_HELPER_THREAD_H

#include "base/time.h"

#include <holdfast.h>
#include <stdbool.h>

/* Starts the thread, which opens the backend. Returns 0, or an error code with
 * a message. Sets *given_up if the open takes too long; the helper thread will
 * then free the client. */
int hf__helper_start(hf_client *, hf__time until, hf_error *, bool *given_up);
void hf__helper_stop(hf_client *);

#endif
