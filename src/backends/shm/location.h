/*
 * Where the file is, and what the URL says about it. Unless a comment names
 * another code, errors are EBACKEND with a text that names the path.
 */
#ifndef HF_SHM_LOCATION_H
#define HF_SHM_LOCATION_H

#include "shm.h"

#define SHM_FILE_NAME "locks"
/* bytes for the entry of a group, which may be large */
#define SHM_LOOKUP_MAX (1u << 20)

struct shm_location {
    char dir[200];
    bool is_default; /* the URL names no directory */
    mode_t mode;     /* of the file; the directory has x where the file has r */
    gid_t group;
    bool group_given;
    bool existing; /* create nothing */
    char boot[40];
    uint64_t world;
    /* What the last try to open the file found: */
    uint32_t other_version; /* 0: it was our version */
    bool other_world;
};

/* Reads the URL. Returns 0; EINVAL if it is wrong; ENOMEM; or EBACKEND. */
int hf__shm_location_find(struct shm *, const struct hf__config *,
                          struct shm_location *);
/* Return EBACKEND with a text: what is refused, and why (by errno: what could
 * not be done). */
int hf__shm_refuse(struct shm *, const char *what, const char *why);
int hf__shm_refuse_errno(struct shm *, const char *what, const char *verb);
/* Returns ENOTOWNER: there is no file, and none is to be created. */
int hf__shm_absent(struct shm *);
/* Returns EBACKEND, or ENOTOWNER if no file is to be created. */
int hf__shm_no_parent(struct shm *, const struct shm_location *);

#endif
