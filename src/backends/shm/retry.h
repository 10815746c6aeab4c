/*
 * A loop that swaps a word until nobody else has changed it in between. It ends
 * after a time that no contention comes to, since a process that changes the
 * word all the time must not keep a caller for ever. Every such loop of this
 * folder has a struct shm_retry, which begins as {.of = the entry}.
 */
#ifndef HF_SHM_RETRY_H
#define HF_SHM_RETRY_H

#include "shm.h"

struct shm_retry {
    const struct shm_entry *of; /* what it is about; NULL: no name */
    uint32_t len;
    int64_t since; /* of the thread's time on a processor, in ns */
};

/* May the loop try once more? False: others have changed the word for so long
 * that they are no clients that keep to the rules. What was to be done stays
 * undone, and the caller returns hf__shm_retry_refuse. */
bool hf__shm_retry(struct shm *, struct shm_retry *);
/* Returns EBACKEND, and says why. */
int hf__shm_retry_refuse(struct shm *);

#endif
