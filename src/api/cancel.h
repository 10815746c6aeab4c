/*
 * hf_cancel, with which a thread or a signal handler ends the wait of another
 * thread. A wait that may drive a client is attached to the cancel, so that
 * firing it also wakes the driver.
 */
#ifndef HF_CANCEL_H
#define HF_CANCEL_H

#include <holdfast.h>
#include <stdbool.h>

/* Makes a firing also wake the client's driver. Returns false if the cancel has
 * already been fired. */
bool hf__cancel_attach(hf_cancel *, hf_client *);
/* Undoes hf__cancel_attach() after the wait. */
void hf__cancel_detach(hf_cancel *, hf_client *);

#endif
