/* How long threads have waited for a processor so far, in ns. A time limit must
 * not include that time, because it depends on the load of the machine. */
#ifndef CPU_WAIT_H
#define CPU_WAIT_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* Returns the time that the schedstat file at that path reports, or 0 if the
 * file cannot be read. */
static inline int64_t cpu_wait_in(const char *path)
{
    char text[100] = "";
    long long ran, waited = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) <= 0 ||
        sscanf(text, "%lld %lld", &ran, &waited) != 2)
        waited = 0;
    close(fd);
    return waited;
}

static inline int64_t cpu_wait_of_thread(void)
{
    return cpu_wait_in("/proc/thread-self/schedstat");
}

/* Reads only the first thread of the process, whose counters are kept even
 * while the process is a zombie. */
static inline int64_t cpu_wait_of_first(pid_t pid)
{
    char path[40];

    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    return cpu_wait_in(path);
}

/* Returns the sum over all threads of the process. */
static inline int64_t cpu_wait_of(pid_t pid)
{
    char path[64];
    const struct dirent *entry;
    int64_t sum = 0;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && (entry = readdir(tasks))) {
        int tid =
            entry->d_name[0] == '.' ? 0 : (int)strtol(entry->d_name, NULL, 10);

        snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid,
                 tid);
        sum += tid ? cpu_wait_in(path) : 0;
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

#endif
