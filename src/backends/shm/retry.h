/*
 * Limits a loop that swaps a word until no other client has changed it
 * meanwhile. The loop ends after a time that no contention takes, because a
 * process that changes the word all the time must not keep a caller for ever.
 * Every such loop in this folder has a struct shm_retry, which begins as {.of =
 * the entry}.
 */
#ifndef HF_SHM_RETRY_H
#define HF_SHM_RETRY_H

#include "shm.h"

struct shm_retry {
    const struct shm_entry *of; /* the entry whose word the loop swaps; NULL: a
                                   word outside the entries */
    uint32_t len;
    int64_t since; /* processor time of the thread, in ns */
};

/* May the loop try again? False: other clients have changed the word for longer
 * than clients that keep to the rules would. The change is not made, and the
 * caller returns hf__shm_retry_refuse. */
bool hf__shm_retry(struct shm *, struct shm_retry *);
/* Returns EBACKEND, with a text. */
int hf__shm_retry_refuse(struct shm *);

#endif
