/*
 * Limits a loop that repeats the swap of a word until the swap succeeds. The
 * loop gives up after a time that ordinary contention never needs, because a
 * process that changes the word continually must not keep a caller for ever.
 * Every such loop in this folder has a struct shm_retry, which is initialised
 * as {.of = the entry}, or as {0} if the word belongs to no entry.
 */
#ifndef HF_SHM_RETRY_H
#define HF_SHM_RETRY_H

#include "shm.h"

struct shm_retry {
    const struct shm_entry *of; /* the entry of the word, or NULL if none */
    uint32_t len;
    int64_t since; /* thread's processor time at the first check, in ns */
};

/* Returns whether the loop may try again. Returns false if other clients have
 * changed the word for longer than clients that keep to the rules would. The
 * change is then not made, and the caller returns hf__shm_retry_refuse. */
bool hf__shm_retry(struct shm *, struct shm_retry *);
/* Returns EBACKEND with a message that the word changes continually. */
int hf__shm_retry_refuse(struct shm *);

#endif
