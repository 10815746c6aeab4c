/*
 * Checks who may own the directory and the file. Each check returns 0, or
 * EBACKEND with an error message.
 */
#ifndef HF_SHM_ACCESS_H
#define HF_SHM_ACCESS_H

#include "location.h"
#include "shm.h"

#include <sys/stat.h>

/* Returns true for root, for our own user, and for members of the group in the
 * URL. */
bool hf__shm_is_trusted(struct shm *, const struct shm_location *, uid_t user);
/* Refuses `path` if its owner is not trusted. A group member is trusted only if
 * `path` belongs to the group. */
int hf__shm_check_owner(struct shm *, const struct shm_location *,
                        const char *path, const struct stat *);
/* If the URL names a group, refuses `path` if another group may write to it. */
int hf__shm_check_group(struct shm *, const struct shm_location *,
                        const char *path, const struct stat *);
/* Returns EBACKEND with a message that members of the group have no access to
 * `path`, and that `mode` would give it to them. */
int hf__shm_keeps_out(struct shm *, const struct shm_location *,
                      const char *path, const struct stat *, const char *mode);
/* Returns EBACKEND with a message that the owner is not trusted. */
int hf__shm_refuse_stranger(struct shm *, const struct shm_location *,
                            const char *path, uid_t owner);

#endif
