/* Where the file is, and what the URL says of it: between location.c and
 * file.c. */
#ifndef HF_SHM_PLACE_H
#define HF_SHM_PLACE_H

#include "shm.h"

#include <sys/stat.h>
#include <sys/types.h>

#define SHM_FILE_NAME "locks"

struct shm_location {
    char dir[200];
    bool is_default; /* the URL names no directory */
    mode_t mode;     /* of the file; the directory's has x where this has r */
    gid_t group;
    bool group_given;
    bool existing; /* nothing is to be made */
    char boot[40];
    uint64_t world;
    /* What the last try found: */
    uint32_t other_version; /* 0: it was ours */
    bool other_world;
};

/* EBACKEND, with the name of what is wrong. */
int hf__shm_refuse(struct shm *, const char *what, const char *why);
int hf__shm_refuse_errno(struct shm *, const char *what, const char *verb);

int hf__shm_location_find(struct shm *, const struct hf__config *,
                          struct shm_location *);
/* ENOTOWNER: there is none, and it is not to be made. */
int hf__shm_absent(struct shm *);
/* EBACKEND, or ENOTOWNER if none is to be made. */
int hf__shm_no_parent(struct shm *, const struct shm_location *);
/* Is the user trusted with the locks? */
bool hf__shm_is_trusted(struct shm *, const struct shm_location *, uid_t user);
/* parent_dirs.c: EBACKEND if a user who is not trusted may rename the
 * directory. */
int hf__shm_parent_dirs_check(struct shm *, const struct shm_location *);
/* Makes the directory if there is none. */
int hf__shm_directory_open(struct shm *, const struct shm_location *);
/* A process that makes something for a group gives it to the group a moment
 * later: what may not be opened now may be opened soon. */
int hf__shm_open_soon(int at, const char *path, int flags,
                      const struct shm_location *);
int hf__shm_check_owner(struct shm *, const struct shm_location *,
                        const char *path, const struct stat *);
/* A group that may write to it must be that of the URL. */
int hf__shm_check_group(struct shm *, const struct shm_location *,
                        const char *path, const struct stat *);
/* HF_EBACKEND, with a text: members of the group cannot use it as it is, but
 * with this mode. */
int hf__shm_keeps_out(struct shm *, const struct shm_location *,
                      const char *path, const struct stat *, const char *mode);

#endif
