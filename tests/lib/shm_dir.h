/* Creates a directory in memory for the shared memory file of a test; the
 * backend's default directory is in memory too. On a disk, a process that
 * writes to the mapped file may have to wait until a page is written. */
#ifndef SHM_DIR_H
#define SHM_DIR_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool shm_dir_make(char *dir, size_t size, const char *name)
{
    const char *base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    int n = snprintf(dir, size, "%s/%s.XXXXXX", base, name);

    return n > 0 && (size_t)n < size && mkdtemp(dir);
}

/* A directory made by shm_dir_make(), the file that a client creates in it, and
 * its URL. */
struct locks_place {
    char dir[64], file[80], url[80];
};

static inline bool locks_place_make(struct locks_place *p, const char *name)
{
    if (!shm_dir_make(p->dir, sizeof(p->dir), name))
        return false;
    snprintf(p->file, sizeof(p->file), "%s/locks", p->dir);
    snprintf(p->url, sizeof(p->url), "shm://%s", p->dir);
    return true;
}

static inline void locks_place_remove(const struct locks_place *p)
{
    unlink(p->file);
    rmdir(p->dir);
}

#endif
