/*
 * How threads of this process wait for each other: futexes, and a four-byte
 * mutex made of one.
 *
 * There is one mutex per name, and every acquire locks it. Therefore
 * pthread_mutex_t is not used: its size (40 bytes) and its call (not inlined)
 * both count. Condition variables are not used because a signal handler must be
 * able to end a wait: a futex allows this, pthread_cond_signal() does not.
 */
#ifndef HF_FUTEX_H
#define HF_FUTEX_H

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct hf__mutex {
    uint32_t word; /* 0: free; 1: locked; 2: locked, and a thread may be
                      asleep */
};

/* Locks a mutex that another thread may hold; sleeps until it is free. */
void hf__mutex_lock_slow(struct hf__mutex *);

/* Wakes up to how_many threads that sleep on the word. Async-signal-safe. The
 * word itself is not read, so its memory may already have been freed. */
void hf__futex_wake(uint32_t *word, int how_many);

static inline void hf__mutex_lock(struct hf__mutex *m)
{
    uint32_t free_word = 0;

    if (!__atomic_compare_exchange_n(&m->word, &free_word, 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        hf__mutex_lock_slow(m);
}

static inline void hf__mutex_unlock(struct hf__mutex *m)
{
    if (__atomic_exchange_n(&m->word, 0, __ATOMIC_RELEASE) == 2)
        hf__futex_wake(&m->word, 1);
}

static inline struct hf__mutex *hf__mutex_enter(struct hf__mutex *m)
{
    hf__mutex_lock(m);
    return m;
}

static inline void hf__mutex_leave(struct hf__mutex *const *m)
{
    hf__mutex_unlock(*m);
}

/* Locks the mutex until the end of the block. The value of a return statement
 * is computed before the unlock. */
#define HF__HOLDING(mutex)                                                     \
    struct hf__mutex *const hf__holding                                        \
        __attribute__((cleanup(hf__mutex_leave), unused)) =                    \
            hf__mutex_enter(mutex)

/* The longest single sleep of a wait that has a time limit. After such a sleep
 * the clock is read again, because the kernel measures sleeps with a clock that
 * stops while the machine is suspended. */
#define HF__NAP (30000 * HF__MS)

/* Sleeps while *word == expect, at most until the time `until`. May return
 * early. */
void hf__futex_wait(uint32_t *word, uint32_t expect, hf__time until);

#endif
