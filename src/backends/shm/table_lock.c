/*
 * Words with the id of a thread, which the kernel marks when that thread ends:
 * `alive` of each client, and the table lock (which guards slots and names).
 * They are robust futexes, as glibc's robust mutexes are. But a glibc mutex
 * contains pointers, which would be in the file, where any user with write
 * access could change them. Here, all pointers are in private memory.
 *
 * The kernel walks a list that belongs to the thread. To the address of each
 * element it adds an offset, which the thread chooses, and finds the word
 * there. The helper thread's list has one element, which is in the client
 * (struct shm); the offset leads from there to the client's `alive`.
 *
 * The kernel also checks one word per thread that is not in the list: the word
 * whose address is in list_op_pending, a field that is meant for a lock
 * operation in progress. A thread that takes the table lock puts the address of
 * the lock there, and leaves it there until it has released the lock. The field
 * is in the list head that the C library has registered for the thread; only
 * the helper thread has its own list head. If hooks of the program use a robust
 * mutex in the meantime, the C library overwrites the field. If the thread then
 * ends, the kernel marks nothing, but the waiters notice that the thread no
 * longer exists.
 *
 * Every change of the tables takes effect by its last store; before that store,
 * the change can be started again. A lock whose owner died therefore needs no
 * repair: it is simply taken.
 *
 * The content of the lock is not trusted: a waiter checks occasionally whether
 * the thread that the lock names exists, and does not wait for ever.
 */
#include "table_lock.h"

#include "base/uncancelled.h"
#include "liveness.h"
#include "retry.h"
#include "wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_NAP_NS (10 * HF__MS)

#define LONGEST_NAP_NS (160 * HF__MS)

static uint32_t lock_this_thread(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/* Returns the robust list of this thread, or NULL if it has none. */
static struct robust_list_head *lock_list_of_thread(void)
{
    struct robust_list_head *head = NULL;
    size_t len = 0;

    return syscall(SYS_get_robust_list, 0, &head, &len) ? NULL : head;
}

/* Makes the kernel also check `word` when the thread ends; NULL ends this. */
static void lock_note(struct robust_list_head *head, shm_u32 *word)
{
    uintptr_t at = (uintptr_t)word - (uintptr_t)(word ? head->futex_offset : 0);

    __atomic_store_n(&head->list_op_pending, (struct robust_list *)at,
                     __ATOMIC_SEQ_CST);
}

static void lock_begin(struct shm_thread *me, shm_u32 *word)
{
    me->number = lock_this_thread();
    me->list = lock_list_of_thread();
    if (me->list)
        lock_note(me->list, word);
}

static void lock_end(struct shm_thread *me)
{
    if (me->list)
        lock_note(me->list, NULL);
}

/* The caller is the helper thread and holds the table lock. */
void hf__shm_robust_begin(struct shm *s, struct shm_thread *me, shm_u32 *alive)
{
    struct shm_robust *r = &s->robust;

    r->old = me->list;
    r->entry.next = &r->head.list;
    r->head.list.next = &r->entry;
    r->head.futex_offset = (long)((uintptr_t)alive - (uintptr_t)&r->entry);
    lock_note(&r->head, &s->file->header.tables);
    syscall(SYS_set_robust_list, &r->head, sizeof(r->head));
    lock_end(me);
    me->list = &r->head;
    SHM_POINT();
    atomic_store(alive, me->number);
}

void hf__shm_robust_clear(struct shm *s, shm_u32 *alive)
{
    uint32_t word = atomic_load(alive), me = lock_this_thread();
    struct shm_retry retry = {0};

    while ((word & FUTEX_TID_MASK) == me &&
           !atomic_compare_exchange_weak(alive, &word, 0) &&
           hf__shm_retry(s, &retry))
        ;
}

void hf__shm_robust_end(struct shm *s)
{
    syscall(SYS_set_robust_list, s->robust.old, sizeof(s->robust.head));
}

/* Tries once to take the table lock; *seen becomes the value of the lock's
 * word. No thread takes the lock twice. If the word contains our own thread id,
 * that id is therefore stale, or the word is damaged. */
static bool lock_take(struct shm *s, uint32_t me, uint32_t flags,
                      uint32_t *seen)
{
    shm_u32 *word = &s->file->header.tables;
    struct shm_retry retry = {0};

    *seen = atomic_load(word);
    while ((!(*seen & FUTEX_TID_MASK) || (*seen & FUTEX_TID_MASK) == me) &&
           hf__shm_retry(s, &retry))
        if (atomic_compare_exchange_weak(word, seen,
                                         me | flags | (*seen & FUTEX_WAITERS)))
            return true;
    return false;
}

/* With hidepid= /proc may not show the threads of other users; kill(2) is
 * therefore tried, too. */
static bool lock_is_thread_gone(uint32_t tid)
{
    enum shm_life life = hf__shm_life_of(tid);
    char path[40];

    if (life != SHM_UNKNOWN) /* it is unknown if `tid` is not the first thread
                                of its process */
        return life == SHM_EXITED;
    snprintf(path, sizeof(path), "/proc/%u", tid);
    return kill((pid_t)tid, 0) && errno == ESRCH && access(path, F_OK) &&
           errno == ENOENT;
}

static void lock_sleep_on(shm_u32 *word, uint32_t seen, hf__time nap)
{
    SHM_POINT();
    if ((seen & FUTEX_WAITERS) ||
        atomic_compare_exchange_strong(word, &seen, seen | FUTEX_WAITERS))
        hf__shm_futex_wait(word, FUTEX_WAIT, seen | FUTEX_WAITERS, nap);
}

/* Waits until it has taken the table lock. Returns false if one thread held the
 * lock for longer than `patience`, or if `limit` has passed. *seen is the last
 * value of the word; *moved is when the owner of the lock or the count of
 * unlocks was last seen to change. A thread that takes and releases the lock in
 * a loop may hold it at each try, but does not count as one that keeps it,
 * because the count of unlocks changes. */
static bool lock_wait_for_it(struct shm *s, const struct shm_thread *me,
                             hf__time patience, hf__time limit, uint32_t *seen,
                             hf__time *moved)
{
    struct shm_header *h = &s->file->header;
    hf__time now = s->core->now(), by = now + limit, until = by;
    hf__time nap = FIRST_NAP_NS;
    shm_u32 *word = &h->tables;
    uint32_t owner = 0, unlocks = 0;

    for (; !lock_take(s, me->number, owner ? FUTEX_WAITERS : 0, seen);
         now = s->core->now()) {
        uint32_t count = atomic_load(&h->unlocks);

        if (owner != (*seen & FUTEX_TID_MASK) || unlocks != count) {
            owner = *seen & FUTEX_TID_MASK;
            unlocks = count;
            *moved = now;
            until = now + patience < by ? now + patience : by;
            nap = FIRST_NAP_NS;
        } else if (lock_is_thread_gone(owner)) {
            hf__shm_mark_dead(word, *seen);
            continue;
        }
        if (now >= until)
            return false;
        lock_sleep_on(word, *seen, nap < until - now ? nap : until - now);
        nap = nap < LONGEST_NAP_NS ? nap * 2 : nap;
    }
    return true;
}

/* Returns the process that a thread belongs to, or the thread's id if we may
 * not see the process. */
static unsigned lock_process_of(unsigned tid)
{
    HF__UNCANCELLED;
    char path[40], text[512], *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/status", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tid;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, "\nTgid:");
    return at ? (unsigned)strtoul(at + 6, NULL, 10) : tid;
}

int hf__shm_tables_lock(struct shm *s, struct shm_thread *me, hf__time patience,
                        hf__time limit)
{
    hf__time moved = 0;
    uint32_t seen;

    lock_begin(me, &s->file->header.tables);
    if (lock_wait_for_it(s, me, patience, limit, &seen, &moved)) {
        SHM_POINT();
        return 0;
    }
    lock_end(me);
    if (patience > SHM_TABLES_NS)
        patience = SHM_TABLES_NS;
    if (s->core->now() - moved < patience)
        return s->core->why(s->client, HF_EBACKEND,
                            "%s: too many want its tables at once; try again",
                            s->path);
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: process %u holds its tables and does not let go "
                        "(is it stopped?)",
                        s->path, lock_process_of(seen & FUTEX_TID_MASK));
}

bool hf__shm_tables_trylock(struct shm *s, struct shm_thread *me)
{
    shm_u32 *word = &s->file->header.tables;
    uint32_t seen;
    bool locked;

    lock_begin(me, word);
    locked = lock_take(s, me->number, 0, &seen);
    if (!locked)
        lock_end(me);
    return locked;
}

void hf__shm_tables_unlock(struct shm *s, struct shm_thread *me)
{
    shm_u32 *word = &s->file->header.tables;
    uint32_t old = atomic_load(word);
    struct shm_retry retry = {0};

    atomic_fetch_add(&s->file->header.unlocks, 1);
    SHM_POINT();
    while ((old & FUTEX_TID_MASK) == me->number &&
           !atomic_compare_exchange_weak(word, &old, 0) &&
           hf__shm_retry(s, &retry))
        ;
    SHM_POINT();
    if (old & FUTEX_WAITERS)
        hf__shm_futex_wake(word, 1);
    lock_end(me);
}
