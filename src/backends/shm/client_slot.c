/*
 * Clients: each has a slot for as long as it is open.
 *
 * A client is alive while `alive` holds its helper's thread id. When that
 * thread ends, the kernel marks the word and wakes one of the threads that
 * sleep on it (table_lock.c). Marked is not yet gone: other threads of the
 * process may still be inside a system call that writes what the lock protects.
 * So a waiter's place is skipped on the mark alone, but a lock is taken from
 * its holder only when the process is gone: its pid is free, a zombie, or
 * somebody else's; or its descriptor of the file is closed, as after execve(2).
 * For that each client has an open-file-description lock on the byte of its
 * slot.
 *
 * The kernel finds what it is to mark by a list in the thread's own memory.
 * Where that was taken away before (the reaper of out-of-memory kills,
 * process_mrelease(2)), or the word is damaged, it marks nothing: a client that
 * has waited in vain asks for the process, and marks on the kernel's behalf.
 */
#include "base/uncancelled.h"
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct shm_slot *slot_of(struct shm *s, uint32_t owner)
{
    return &s->file->slot[owner & SHM_SLOT_MASK];
}

static bool is_registered(struct shm_slot *slot, uint32_t owner)
{
    return (owner & SHM_SLOT_MASK) &&
           atomic_load(&slot->state) == SHM_SLOT_USED &&
           (atomic_load(&slot->gen) & 0xff) == owner >> 12;
}

bool hf__shm_alive(struct shm *s, uint32_t owner)
{
    struct shm_slot *slot = slot_of(s, owner);
    uint32_t word = atomic_load(&slot->alive);

    return (word & FUTEX_TID_MASK) && !(word & FUTEX_OWNER_DIED) &&
           is_registered(slot, owner);
}

/* The state and the start time of a process: fields 3, 20 and 22. 0 if it
 * cannot be read, -1 if there is no such process. */
static int read_stat(uint32_t pid, char *state, long *threads, uint64_t *start)
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
    at = strrchr(buf, ')'); /* the command may contain anything */
    if (!at || sscanf(at + 1,
                      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                      "%*s %*s %*s %*s %ld %*s %llu",
                      state, threads, (unsigned long long *)start) != 3)
        return 0;
    return 1;
}

/* Without pidfd_open(2), or where it cannot tell: by /proc. With hidepid= we
 * may not see the processes of others: what exists is then taken for alive. */
static bool is_process_gone_by_proc(uint32_t pid, uint64_t start)
{
    char state = '?';
    long threads = 0;
    uint64_t started = 0;

    if (kill((pid_t)pid, 0) && errno == ESRCH)
        return true;
    if (read_stat(pid, &state, &threads, &started) != 1)
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

static struct flock byte_of(uint32_t slot)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
}

/* True if nobody has the client's descriptor any more. A child that it forked
 * may have it: then this cannot tell. Who closes lets go of the byte before its
 * slot: says so before, and is asked again after. */
static bool is_file_closed(struct shm *s, uint32_t slot)
{
    shm_u32 *has_byte = &s->file->slot[slot].has_byte;
    struct flock byte = byte_of(slot);

    return atomic_load(has_byte) && !fcntl(s->fd, F_OFD_GETLK, &byte) &&
           byte.l_type == F_UNLCK && atomic_load(has_byte);
}

bool hf__shm_gone(struct shm *s, uint32_t owner)
{
    struct shm_slot *slot = slot_of(s, owner);
    uint32_t pid;

    if (hf__shm_alive(s, owner))
        return false;
    if (!is_registered(slot, owner))
        return true;
    pid = atomic_load(&slot->pid);
    return is_file_closed(s, owner & SHM_SLOT_MASK) ||
           hf__shm_life_of(pid) == SHM_EXITED ||
           is_process_gone_by_proc(pid, atomic_load(&slot->start));
}

/* The word is read before the process is asked about: if the slot has gone to
 * another client since, the word is another one, too. /proc is used only for a
 * client whose byte lock is gone: it may be of another pid namespace than
 * ours. */
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
        (is_file_closed(s, n % SHM_SLOTS) &&
         is_process_gone_by_proc(pid, atomic_load(&slot->start))))
        hf__shm_mark_dead(&slot->alive, word);
}

/* Whatever says that this slot waits, holds or has a handle. */
static void sweep(struct shm *s, uint32_t slot, bool reclaim)
{
    struct shm_file *f = s->file;
    uint32_t cells = atomic_load(&f->header.cells_high) % (SHM_CELLS + 1);
    uint32_t names = atomic_load(&f->header.names_high) % (SHM_NAMES + 1);

    for (unsigned i = 0; i < cells; i++)
        if ((atomic_load(&f->cell[i].owner) & SHM_SLOT_MASK) == slot)
            hf__shm_cell_drop(s, i);
    for (unsigned i = 0; i < names; i++) {
        struct shm_entry *e = &f->entry[i];
        uint64_t bit = 1ULL << slot % 64;
        struct shm_retry retry = {.of = e};
        uint64_t w;

        if (!atomic_load(&f->hash[i]))
            continue;
        while (shm_kind(e) == HF_MUTEX &&
               (w = atomic_load(&e->word), (w & SHM_SLOT_MASK) == slot) &&
               hf__shm_retry(s, &retry))
            hf__shm_mutex_pass(s, i, w);
        if (!(atomic_load(&e->attached[slot / 64]) & bit))
            continue;
        SHM_POINT();
        atomic_fetch_and(&e->attached[slot / 64], ~bit);
        if (reclaim)
            hf__shm_name_reclaim_locked(s, i);
    }
}

static void bury_locked(struct shm *s, uint32_t n)
{
    struct shm_slot *slot = &s->file->slot[n];

    SHM_POINT();
    hf__shm_futex_wake(&slot->alive, INT_MAX);
    sweep(s, n, true);
    SHM_POINT();
    atomic_store(&slot->state, SHM_SLOT_FREE);
}

/* The kernel goes through all bytes to find one: of many, some at a time. */
static bool is_to_be_asked(uint32_t slot, uint32_t high)
{
    return high <= 64 || (slot ^ (uint32_t)getpid()) % 64 == 0;
}

void hf__shm_bury_all_locked(struct shm *s)
{
    uint32_t high = atomic_load(&s->file->header.slots_high) % SHM_SLOTS;

    for (uint32_t i = 1; i <= high; i++) {
        struct shm_slot *slot = &s->file->slot[i];
        uint32_t owner = i | (atomic_load(&slot->gen) & 0xff) << 12;

        if (atomic_load(&slot->state) != SHM_SLOT_USED)
            continue;
        if ((kill((pid_t)atomic_load(&slot->pid), 0) && errno == ESRCH) ||
            (is_to_be_asked(i, high) && is_file_closed(s, i)))
            hf__shm_mark_unmarked(s, i);
        if (hf__shm_gone(s, owner))
            bury_locked(s, i);
    }
}

void hf__shm_bury(struct shm *s, uint32_t owner)
{
    struct shm_thread thread;

    if (!hf__shm_tables_trylock(s, &thread))
        return; /* the next who opens a client will do it */
    if (is_registered(slot_of(s, owner), owner) && hf__shm_gone(s, owner))
        bury_locked(s, owner & SHM_SLOT_MASK);
    hf__shm_tables_unlock(s, &thread);
}

static int take_locked(struct shm *s, struct shm_thread *me, uint32_t n,
                       bool has_byte, const char *label)
{
    struct shm_slot *slot = &s->file->slot[n];
    uint32_t gen = atomic_load(&slot->gen) + 1;
    uint32_t pid = (uint32_t)getpid();
    uint64_t start = 0;
    long threads;
    char state;

    if (read_stat(pid, &state, &threads, &start) != 1)
        return s->core->why(s->client, HF_EBACKEND,
                            "/proc/%u/stat: cannot read it", pid);
    if (n > atomic_load(&s->file->header.slots_high))
        atomic_store(&s->file->header.slots_high, n);
    atomic_store(&slot->gen, gen);
    atomic_store(&slot->pid, pid);
    atomic_store(&slot->start, start);
    atomic_store(&slot->doorbell, 0);
    atomic_store(&slot->watchers, 0);
    atomic_store(&slot->listens, s->listens);
    atomic_store(&slot->marks, 0);
    atomic_store(&slot->broken, 0);
    atomic_store(&slot->has_byte, has_byte);
    shm_label_put(slot->label, label);
    SHM_POINT();
    hf__shm_robust_begin(s, me, &slot->alive);
    SHM_POINT();
    atomic_store(&slot->state, SHM_SLOT_USED);
    s->me = n | (gen & 0xff) << 12;
    return 0;
}

/* A free slot, and its byte. A child of whoever was killed there may have that
 * still: then another slot is better, if there is one. 0: none is free. */
static uint32_t find_slot_locked(struct shm *s, bool *has_byte)
{
    uint32_t found = 0;

    *has_byte = false;
    for (uint32_t i = 1; i < SHM_SLOTS; i++) {
        struct flock byte = byte_of(i);

        if (atomic_load(&s->file->slot[i].state) != SHM_SLOT_FREE)
            continue;
        if (!found)
            found = i;
        *has_byte = !fcntl(s->fd, F_OFD_SETLK, &byte);
        if (*has_byte)
            return i;
        if (errno != EAGAIN && errno != EACCES)
            break; /* not to be had in this file system */
    }
    return found;
}

int hf__shm_slot_take(struct shm *s, const char *label, hf__time by)
{
    hf__time left = by - s->core->now();
    struct shm_thread thread;
    int rc = hf__shm_tables_lock(s, &thread, left, left);
    bool has_byte;
    uint32_t n;

    if (rc)
        return rc;
    hf__shm_bury_all_locked(s);
    hf__shm_names_sweep_locked(s);
    n = find_slot_locked(s, &has_byte);
    if (n)
        rc = take_locked(s, &thread, n, has_byte, label);
    hf__shm_tables_unlock(s, &thread);
    if (n)
        return rc;
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: %u clients have it open already, the limit; use "
                        "a second directory: shm:///directory",
                        s->path, SHM_SLOTS - 1);
}

/* A child that was forked meanwhile may have the descriptor for long: whoever
 * comes after us needs the byte. In this order, see is_file_closed. */
static void give_byte(struct shm *s, uint32_t n)
{
    struct flock byte = byte_of(n);

    atomic_store(&s->file->slot[n].has_byte, 0);
    SHM_POINT();
    byte.l_type = F_UNLCK;
    fcntl(s->fd, F_OFD_SETLK, &byte);
    SHM_POINT();
}

/* Needs no lock: what is swept is our own, and the state is set last. Names
 * that nobody uses any more are left to others if it is not free. */
void hf__shm_slot_give(struct shm *s)
{
    uint32_t n = s->me & SHM_SLOT_MASK;
    struct shm_slot *slot = &s->file->slot[n];
    struct shm_thread thread;
    bool locked = hf__shm_tables_trylock(s, &thread);

    sweep(s, n, locked);
    SHM_POINT();
    give_byte(s, n);
    hf__shm_robust_clear(s, &slot->alive);
    SHM_POINT();
    atomic_store(&slot->state, SHM_SLOT_FREE);
    if (locked)
        hf__shm_tables_unlock(s, &thread);
    else
        atomic_fetch_add(&s->file->header.unswept, 1);
    hf__shm_futex_wake(&slot->alive, INT_MAX);
    hf__shm_robust_end(s);
}
