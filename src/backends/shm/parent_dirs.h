/*
 * The directories above the directory of the file.
 */
#ifndef HF_SHM_PARENT_DIRS_H
#define HF_SHM_PARENT_DIRS_H

#include "location.h"
#include "shm.h"

/* Returns EBACKEND if a user who is not trusted may rename the directory, or
 * one above it, or if the directories cannot be checked. Otherwise returns
 * 0. */
int hf__shm_parent_dirs_check(struct shm *, const struct shm_location *);

#endif
