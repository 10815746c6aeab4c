#include "proc_stat.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STATUS = 4096,
    MANY_THREADS = 200, /* at most so many threads of a server are checked */
};

/* Opens the status files of up to max threads of a process. Returns how many
 * were opened. */
static unsigned proc_stat_open_threads(pid_t pid, int *fds, unsigned max)
{
    struct dirent *entry;
    char path[320];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir && n < max && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid,
                 entry->d_name);
        fds[n] = open(path, O_RDONLY | O_CLOEXEC);
        n += fds[n] >= 0; /* otherwise the thread has ended */
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Returns false if the thread has ended. */
static bool read_status(int fd, char text[STATUS])
{
    ssize_t len = pread(fd, text, STATUS - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* Returns the text after the key in a status file. Dies if the key is
 * missing. */
static const char *proc_stat_find(const char *status, const char *key)
{
    const char *at = strstr(status, key);

    if (!at)
        lab_die(CLI_OSERR, "the status of a thread in /proc has no \"%s\"",
                key + 1);
    return at + strlen(key);
}

static bool runs_proc_stat(const char *status)
{
    return *proc_stat_find(status, "\nState:\t") == 'R';
}

void proc_stat_open(struct proc_stat *stat, pid_t pid)
{
    stat->threads = proc_stat_open_threads(pid, stat->fds, PROC_STAT_THREADS);
    if (!stat->threads || clock_getcpuclockid(pid, &stat->clock))
        lab_die(CLI_OSERR, "cannot watch process %d: %s", (int)pid,
                strerror(errno));
}

static uint64_t proc_stat_count_switches(const struct proc_stat *stat,
                                         bool *busy)
{
    uint64_t all = 0;
    char text[STATUS];

    for (unsigned i = 0; i < stat->threads; i++) {
        if (!read_status(stat->fds[i], text))
            continue;
        all += strtoull(proc_stat_find(text, "\nvoluntary_ctxt_switches:"),
                        NULL, 10);
        *busy = *busy || runs_proc_stat(text);
    }
    return all;
}

void proc_stat_note(struct proc_stat *stat)
{
    bool busy = false;

    stat->switches = proc_stat_count_switches(stat, &busy);
}

bool proc_stat_was_woken(const struct proc_stat *stat, bool *busy)
{
    return proc_stat_count_switches(stat, busy) != stat->switches;
}

double proc_stat_cpu_us(const struct proc_stat *stat)
{
    struct timespec used;

    if (clock_gettime(stat->clock, &used) != 0)
        return 0;
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

bool proc_stat_runs(pid_t pid)
{
    int fds[MANY_THREADS];
    unsigned n = proc_stat_open_threads(pid, fds, MANY_THREADS);
    bool busy = false;
    char text[STATUS];

    for (unsigned i = 0; i < n; i++) {
        busy = busy || (read_status(fds[i], text) && runs_proc_stat(text));
        close(fds[i]);
    }
    return busy;
}
