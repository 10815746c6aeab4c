/*
 * Where the file is, and what the URL says of it. Codes are EBACKEND, with the
 * name of what is wrong, unless another one is said.
 */
#ifndef HF_SHM_LOCATION_H
#define HF_SHM_LOCATION_H

#include "shm.h"

#define SHM_FILE_NAME "locks"
#define SHM_LOOKUP_MAX (1u << 20) /* bytes of a group: it may be large */

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

int hf__shm_location_find(struct shm *, const struct hf__config *,
                          struct shm_location *);
int hf__shm_refuse(struct shm *, const char *what, const char *why);
int hf__shm_refuse_errno(struct shm *, const char *what, const char *verb);
/* ENOTOWNER: there is none, and it is not to be made. */
int hf__shm_absent(struct shm *);
/* EBACKEND, or ENOTOWNER if none is to be made. */
int hf__shm_no_parent(struct shm *, const struct shm_location *);

#endif
