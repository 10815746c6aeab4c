/*
 * Determines whether a client is alive and, if not, whether its process is
 * gone. `owner` is a slot and its generation, as in the word of a mutex. A
 * client that is dead but not yet gone no longer has a place in a queue, but
 * keeps its holds.
 */
#ifndef HF_SHM_LIVENESS_H
#define HF_SHM_LIVENESS_H

#include "shm.h"

#include <fcntl.h>
#include <unistd.h>

enum shm_life { SHM_LIVES, SHM_EXITED, SHM_UNKNOWN };

static inline struct shm_slot *shm_slot_of(struct shm *s, uint32_t owner)
{
    return &s->file->slot[owner & SHM_SLOT_MASK];
}

/* The byte of the file that the client in `slot` keeps locked while it is
 * open. */
static inline struct flock shm_slot_byte(uint32_t slot)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
}

/* Returns true if the client is open and the kernel has not marked it. */
bool hf__shm_alive(struct shm *, uint32_t owner);
/* Returns true if the client is not alive and, in addition, its process has
 * ended or has closed the file, or its slot has been freed. Its holds may then
 * be taken. */
bool hf__shm_gone(struct shm *, uint32_t owner);
/* Returns whether the slot is in use by the generation that `owner` names. */
bool hf__shm_is_registered(struct shm_slot *, uint32_t owner);
/* Returns true if the slot's client had locked its byte and no process has the
 * client's descriptor of the file open any longer. */
bool hf__shm_is_file_closed(struct shm *, uint32_t slot);
/* Checks by pidfd_open(2) whether the process is alive. SHM_LIVES may mean
 * another process with the same pid. */
enum shm_life hf__shm_life_of(uint32_t pid);
/* Reads the state, the number of threads and the start time from
 * /proc/PID/stat. Returns 1; 0 if the file cannot be read; -1 if the process
 * does not exist. */
int hf__shm_read_stat(uint32_t pid, char *state, long *threads,
                      uint64_t *start);
/* If *at is still `word`, marks *at as the kernel does when the thread ends
 * whose id is in *at, and wakes all threads that sleep on *at. */
void hf__shm_mark_dead(shm_u32 *at, uint32_t word);
/* Marks the client of that slot as dead if its process is gone but the kernel
 * has not marked it. */
void hf__shm_mark_unmarked(struct shm *, uint32_t slot);

#endif
