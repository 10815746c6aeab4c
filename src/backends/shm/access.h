/*
 * Whose the directory and the file may be. Each check returns 0, or EBACKEND
 * with a text.
 */
#ifndef HF_SHM_ACCESS_H
#define HF_SHM_ACCESS_H

#include "location.h"
#include "shm.h"

#include <sys/stat.h>

/* Is the user trusted with the locks? */
bool hf__shm_is_trusted(struct shm *, const struct shm_location *, uid_t user);
int hf__shm_check_owner(struct shm *, const struct shm_location *,
                        const char *path, const struct stat *);
/* A group that may write to it must be that of the URL. */
int hf__shm_check_group(struct shm *, const struct shm_location *,
                        const char *path, const struct stat *);
/* Members of the group cannot use it as it is, but with this mode. */
int hf__shm_keeps_out(struct shm *, const struct shm_location *,
                      const char *path, const struct stat *, const char *mode);
/* It belongs to that user, who is not trusted. */
int hf__shm_refuse_stranger(struct shm *, const struct shm_location *,
                            const char *path, uid_t owner);

#endif
