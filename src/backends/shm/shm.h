/*
 * One client of the shared-memory backend, and what all files of this folder
 * share. layout.h describes the file, and states the two rules by which clients
 * change a word. README.md lists the files from the bottom to the top.
 *
 * Attempt, abandon and release run with the mutex of the line (struct
 * hf__remote) locked, and may use all members of a struct shm_lock. The members
 * that other functions read are constant or atomic: renew and notify.c read
 * `hold_id` and `mine` under the mutex of the client, and park reads `wait`
 * without a mutex.
 */
#ifndef HF_SHM_SHM_H
#define HF_SHM_SHM_H

#include "backends/backend.h"
#include "layout.h"

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

/* how often to check for a death where the kernel cannot wake us */
#define SHM_POLL_NS (50 * HF__MS)

/* A point at which a test may end the process. There is one between any two
 * steps that are visible to other processes. */
#ifdef HF__SHM_POINTS
void hf__shm_point(const char *file, int line);
#define SHM_POINT() hf__shm_point(__FILE__, __LINE__)
#else
#define SHM_POINT() ((void)0)
#endif

struct shm_listener;
struct shm_wait;

/* The helper thread's list of the words that the kernel marks when the thread
 * ends, see table_lock.c. */
struct shm_robust {
    struct robust_list_head head, *old; /* old: the list of the C library */
    struct robust_list entry;
};

/* length of the table `hurried` */
#define SHM_HURRIED 8u

/* One client. */
struct shm {
    struct shm_file *file;
    hf_client *client;
    const struct hf__core *core;
    uint32_t me;       /* slot and generation, as in a word */
    atomic_bool lost;  /* the file was removed; nothing is granted */
    const char *label; /* label of the client; a lock with this pointer writes
                          no label of its own */
    int fd, dir_fd;
    char path[256]; /* path of the file */
    dev_t root_dev; /* device and inode of / when the file was opened */
    ino_t root_ino;
    atomic_bool no_waitv; /* futex_waitv is missing or forbidden */
    shm_u64 there_at;     /* when we last checked the file, in units of 64 ms */
    shm_u64 hurried[SHM_HURRIED]; /* names whose loops gave up, see retry.c */
    uint32_t doorbell_seen; /* the value of our doorbell at the last advance */
    shm_u32 cells;          /* how many cells our locks have taken */
    uint16_t *lock_counts;  /* our locks per entry, except mutexes */
    bool listens;           /* the program receives events */
    bool early_marks;    /* a mark must be checked again later, see notify.c */
    uint32_t marks_seen; /* the value of our slot.marks at the last poll */
    struct shm_listener *listeners;
    struct shm_robust robust;

    pthread_mutex_t async_mutex; /* locked last, after all others */
    struct shm_wait *async;      /* the waits that the helper thread watches */
};

/* Returns true if nothing may be granted any longer. */
static inline bool shm_is_lost(const struct shm *s)
{
    return __builtin_expect(
        atomic_load_explicit(&s->lost, memory_order_relaxed), 0);
}

/* Returns the time as the file stores it, in ms; rounded up, so that no lease
 * ends earlier in the file than in this process. */
static inline uint64_t shm_to_ms(hf__time at)
{
    return (uint64_t)(at / HF__MS) + 1;
}

/* Returns the wall clock in ms. A coarse clock is enough, because the time is
 * only shown. */
static inline uint64_t shm_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Labels in the file are copied word by word: a concurrent reader may see a
 * mixture of two labels, but there is no data race. */
static inline void shm_label_put(shm_u64 *to, const char *text)
{
    uint64_t words[SHM_LABEL / 8] = {0};

    for (size_t i = 0; text && i < SHM_LABEL - 1 && text[i]; i++)
        ((char *)words)[i] = text[i];
    for (size_t i = 0; i < SHM_LABEL / 8; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
}

static inline void shm_label_get(char *to, shm_u64 *from)
{
    for (size_t i = 0; i < SHM_LABEL / 8; i++)
        ((uint64_t *)(void *)to)[i] =
            atomic_load_explicit(&from[i], memory_order_relaxed);
    to[SHM_LABEL - 1] = '\0';
}

#endif
