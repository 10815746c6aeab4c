/*
 * The directory of the file.
 */
#ifndef HF_SHM_DIRECTORY_H
#define HF_SHM_DIRECTORY_H

#include "location.h"
#include "shm.h"

/* Makes the directory if there is none, and opens it: s->dir_fd. */
int hf__shm_directory_open(struct shm *, const struct shm_location *);
/* A process that makes something for a group gives it to the group a moment
 * later: what may not be opened now may be opened soon. Returns a descriptor,
 * or -1 and errno. */
int hf__shm_open_soon(int at, const char *path, int flags,
                      const struct shm_location *);

#endif
