/*
 * Where the file is, and what the URL says about it. Unless a comment names
 * another code, errors are EBACKEND with a message that names the path.
 */
#ifndef HF_SHM_LOCATION_H
#define HF_SHM_LOCATION_H

#include "shm.h"

#define SHM_FILE_NAME "locks"
/* limit in bytes for an entry of the user or group database */
#define SHM_LOOKUP_MAX (1u << 20)

struct shm_location {
    char dir[200];
    bool is_default; /* the URL names no directory */
    mode_t mode;     /* mode of the file; the directory has x for each r */
    gid_t group;
    bool group_given;
    bool existing; /* use only a file that exists; create nothing */
    char boot[40];
    uint64_t world;
    /* What the last try to open the file found: */
    uint32_t other_version; /* the file's version if it is not ours, or 0 */
    bool other_world;
};

/* Reads the URL. Returns 0; EINVAL if the URL is wrong; ENOMEM; or EBACKEND. */
int hf__shm_location_find(struct shm *, const struct hf__config *,
                          struct shm_location *);
/* Both return EBACKEND with a message about `what`: hf__shm_refuse gives the
 * reason `why`; hf__shm_refuse_errno says that `verb` failed, with the reason
 * in errno. */
int hf__shm_refuse(struct shm *, const char *what, const char *why);
int hf__shm_refuse_errno(struct shm *, const char *what, const char *verb);
/* Returns ENOTOWNER with a message that no locks are in use there: the file
 * does not exist and must not be created. */
int hf__shm_absent(struct shm *);
/* Returns EBACKEND with a message that the parent of the directory does not
 * exist. */
int hf__shm_no_parent(struct shm *, const struct shm_location *);

#endif
