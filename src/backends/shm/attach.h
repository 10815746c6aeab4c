/*
 * Attaches this client to names. The core calls both with the mutex of the
 * client locked. Between attach and detach hf__remote.impl is a struct
 * shm_lock, which the backend owns.
 */
#ifndef HF_SHM_ATTACH_H
#define HF_SHM_ATTACH_H

#include "shm.h"

int hf__shm_attach(void *, struct hf__remote *);
void hf__shm_detach(void *, struct hf__remote *);

#endif
