/* A directory in memory for a test's shared memory file, like the backend's
 * own. On a disk, a process that writes to the mapped file may have to wait
 * until the page is written. */
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

#endif
