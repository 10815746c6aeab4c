/*
 * Determines whether clients are alive.
 *
 * A client is alive while `alive` holds the id of its helper thread. When that
 * thread ends, the kernel marks the word and wakes one of the threads that
 * sleep on it (table_lock.c). A marked client need not be gone: other threads
 * of its process may still be inside a system call that writes what the lock
 * protects. The mark is therefore enough to skip a waiter, but a lock is taken
 * from its holder only when the process is gone: its pid is free, or belongs to
 * a zombie or to another process; or its descriptor of the file is closed, as
 * after execve(2). For the last case each client has an open-file-description
 * lock on the byte of its slot.
 *
 * The kernel finds the word by a list in the thread's own memory. If that
 * memory was freed before the thread ended (by the out-of-memory reaper, or
 * process_mrelease(2)), or if the word is damaged, the kernel marks nothing. A
 * client that has waited in vain therefore checks the process, and marks the
 * word in place of the kernel.
 */
#include "liveness.h"

#include "base/uncancelled.h"
#include "wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool hf__shm_is_registered(struct shm_slot *slot, uint32_t owner)
{
    return (owner & SHM_SLOT_MASK) &&
           atomic_load(&slot->state) == SHM_SLOT_USED &&
           (atomic_load(&slot->gen) & 0xff) == owner >> 12;
}

bool hf__shm_alive(struct shm *s, uint32_t owner)
{
    struct shm_slot *slot = shm_slot_of(s, owner);
    uint32_t word = atomic_load(&slot->alive);

    return (word & FUTEX_TID_MASK) && !(word & FUTEX_OWNER_DIED) &&
           hf__shm_is_registered(slot, owner);
}

int hf__shm_read_stat(uint32_t pid, char *state, long *threads, uint64_t *start)
{
    HF__UNCANCELLED;
    char path[40], buf[1024], *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? -1 : 0;
    n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0)
        return n < 0 && errno == ESRCH ? -1 : 0;
    buf[n] = '\0';
    at = strrchr(buf, ')'); /* the command name may contain any character */
    if (!at || sscanf(at + 1,
                      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                      "%*s %*s %*s %*s %ld %*s %llu",
                      state, threads, (unsigned long long *)start) != 3)
        return 0;
    return 1;
}

/* Returns true if kill(2) or /proc shows that the process has ended. This is
 * for systems where pidfd_open(2) is missing or cannot tell. With hidepid= we
 * may not see the processes of other users; a process that exists is then
 * assumed to be alive. */
static bool liveness_is_process_gone_by_proc(uint32_t pid, uint64_t start)
{
    char state = '?';
    long threads = 0;
    uint64_t started = 0;

    if (kill((pid_t)pid, 0) && errno == ESRCH)
        return true;
    if (hf__shm_read_stat(pid, &state, &threads, &started) != 1)
        return false;
    return started != start || ((state == 'Z' || state == 'X') && threads <= 1);
}

enum shm_life hf__shm_life_of(uint32_t pid)
{
    HF__UNCANCELLED;
    struct pollfd poll_fd = {-1, POLLIN, 0};
    bool gone;

    poll_fd.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (poll_fd.fd < 0)
        return errno == ESRCH ? SHM_EXITED : SHM_UNKNOWN;
    gone = poll(&poll_fd, 1, 0) == 1;
    close(poll_fd.fd);
    return gone ? SHM_EXITED : SHM_LIVES;
}

/* A closing client clears has_byte, then unlocks the byte, then frees the slot.
 * For this reason has_byte is read before and after the test: while it is set,
 * an unlocked byte means that no process has the descriptor open. If a child
 * that the client forked has it open, the answer is false. */
bool hf__shm_is_file_closed(struct shm *s, uint32_t slot)
{
    shm_u32 *has_byte = &s->file->slot[slot].has_byte;
    struct flock byte = shm_slot_byte(slot);

    return atomic_load(has_byte) && !fcntl(s->fd, F_OFD_GETLK, &byte) &&
           byte.l_type == F_UNLCK && atomic_load(has_byte);
}

bool hf__shm_gone(struct shm *s, uint32_t owner)
{
    struct shm_slot *slot = shm_slot_of(s, owner);
    uint32_t pid;

    if (hf__shm_alive(s, owner))
        return false;
    if (!hf__shm_is_registered(slot, owner))
        return true;
    pid = atomic_load(&slot->pid);
    return hf__shm_is_file_closed(s, owner & SHM_SLOT_MASK) ||
           hf__shm_life_of(pid) == SHM_EXITED ||
           liveness_is_process_gone_by_proc(pid, atomic_load(&slot->start));
}

void hf__shm_mark_dead(shm_u32 *at, uint32_t word)
{
    SHM_POINT();
    if (atomic_compare_exchange_strong(
            at, &word, (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED))
        hf__shm_futex_wake(at, INT_MAX);
}

/* Reads the word before it checks the process: if another client takes the slot
 * in the meantime, the word changes, and the swap in hf__shm_mark_dead fails.
 * /proc is used only for a client whose byte is unlocked, because a client with
 * a locked byte may be in a pid namespace other than ours. */
void hf__shm_mark_unmarked(struct shm *s, uint32_t n)
{
    struct shm_slot *slot = &s->file->slot[n % SHM_SLOTS];
    uint32_t word = atomic_load(&slot->alive), pid = atomic_load(&slot->pid);
    enum shm_life life;

    if (!(word & FUTEX_TID_MASK) || (word & FUTEX_OWNER_DIED) ||
        atomic_load(&slot->state) != SHM_SLOT_USED ||
        n % SHM_SLOTS == (s->me & SHM_SLOT_MASK))
        return;
    life = hf__shm_life_of(pid);
    if (life == SHM_EXITED ||
        (life == SHM_UNKNOWN && kill((pid_t)pid, 0) && errno == ESRCH) ||
        (hf__shm_is_file_closed(s, n % SHM_SLOTS) &&
         liveness_is_process_gone_by_proc(pid, atomic_load(&slot->start))))
        hf__shm_mark_dead(&slot->alive, word);
}
