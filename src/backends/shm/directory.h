/*
 * The directory that contains the file.
 */
#ifndef HF_SHM_DIRECTORY_H
#define HF_SHM_DIRECTORY_H

#include "location.h"
#include "shm.h"

/* Opens the directory as s->dir_fd; creates it if it does not exist. */
int hf__shm_directory_open(struct shm *, const struct shm_location *);
/* Opens a file or directory. If access is denied and the URL has mode=0660,
 * tries again for 100 ms, because a process that creates a file or directory
 * for a group gives it to the group a moment later. Returns a descriptor, or -1
 * and errno. */
int hf__shm_open_soon(int at, const char *path, int flags,
                      const struct shm_location *);

#endif
