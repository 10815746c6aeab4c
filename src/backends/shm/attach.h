/*
 * Attaches this client to names. The core calls both functions with the mutex
 * of the client locked. Between attach and detach hf__remote.impl is a struct
 * shm_lock, which the backend owns.
 */
#ifndef HF_SHM_ATTACH_H
#define HF_SHM_ATTACH_H

#include "shm.h"

/* Returns 0; HF__LATER if the table lock could not be taken in time; EBACKEND
 * if the file was removed; EMISMATCH if the name is in use as another kind; or
 * EINVAL, ENOMEM. */
int hf__shm_attach(void *, struct hf__remote *);
/* Detaches the lock, and ends its hold or wait if it still has one. */
void hf__shm_detach(void *, struct hf__remote *);

#endif
