/* How long somebody has waited for a processor so far, in ns: on a busy machine
 * that is no fault of ours, and no bound of time may count it. */
#ifndef CPU_WAIT_H
#define CPU_WAIT_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/* Its first thread. 0: it is gone. */
static inline int64_t cpu_wait_of(pid_t pid)
{
    char path[40], text[100] = "";
    long long ran, waited = 0;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) <= 0 ||
        sscanf(text, "%lld %lld", &ran, &waited) != 2)
        waited = 0;
    close(fd);
    return waited;
}

#endif
