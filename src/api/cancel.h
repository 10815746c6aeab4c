/*
 * hf_cancel: how a wait is ended from another thread or a signal handler. A
 * wait that drives a client is attached to it, so that firing wakes the
 * driver as well.
 */
#ifndef HF_CANCEL_H
#define HF_CANCEL_H

#include <holdfast.h>
#include <stdbool.h>

/* From here on, who fires wakes the client's driver. False: it was fired
 * before. */
bool hf__cancel_attach(hf_cancel *, hf_client *);
void hf__cancel_detach(hf_cancel *, hf_client *);

#endif
