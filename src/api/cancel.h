/*
 * hf_cancel: another thread or a signal handler can end a wait. A wait that may
 * drive a client is attached to it, so that firing also wakes the driver.
 */
#ifndef HF_CANCEL_H
#define HF_CANCEL_H

#include <holdfast.h>
#include <stdbool.h>

/* Makes a firing also wake the client's driver. Returns false if the cancel was
 * fired before. */
bool hf__cancel_attach(hf_cancel *, hf_client *);
void hf__cancel_detach(hf_cancel *, hf_client *);

#endif
