/*
 * hf_cancel, with which a thread or a signal handler ends the wait of another
 * thread. A wait that may drive a client is attached to its hf_cancel, so that
 * hf_cancel_fire() also wakes the driver of that client.
 */
#ifndef HF_CANCEL_H
#define HF_CANCEL_H

#include <holdfast.h>
#include <stdbool.h>

/* Attaches the hf_cancel to the client: from now on hf_cancel_fire() also wakes
 * the client's driver. Returns false if the hf_cancel has already been
 * fired. */
bool hf__cancel_attach(hf_cancel *, hf_client *);
/* Undoes hf__cancel_attach() after the wait. */
void hf__cancel_detach(hf_cancel *, hf_client *);

#endif
