/*
 * How threads of this process wait for each other: futexes, and a mutex of
 * four bytes made of one.
 *
 * Why not pthread_mutex_t: there is one per name and it is on the path of
 * every acquire, so that its size (40 bytes) and its call (not inlined) both
 * count. Why not condition variables: a wait must be ended from a signal
 * handler, which a futex allows and pthread_cond_signal does not.
 */
#ifndef HF_WAIT_H
#define HF_WAIT_H

#include "backends/backend.h"

struct hf__mutex {
    uint32_t word; /* 0 free, 1 taken, 2 taken and somebody sleeps */
};

void hf__mutex_lock_slow(struct hf__mutex *);
/* Async-signal-safe; the word need not exist any more. */
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

/* No sleep that has an end is longer: the kernel measures it by a clock that
 * stands while the machine is suspended. */
#define HF__NAP (30000 * HF__MS)

/* Sleeps while *word == expect, until then at the latest; may return early. */
void hf__futex_wait(uint32_t *word, uint32_t expect, hf__time until);

hf__time hf__now(void);

/*
 * A thread that waits for something. Whoever has news for it changes *word and
 * calls hf__sleeper_wake(), while the sleeper cannot go away (it takes the same
 * mutex before it returns).
 */
struct hf__sleeper {
    struct hf__sleeper *next, *prev; /* followers of the engine's driver */
    uint32_t *word;                  /* own_word, or that of an hf_cancel */
    uint32_t own_word;
    uint32_t posture; /* enum hf__posture */
    bool following;
    bool fresh; /* see hf__sleeper_checks() */
};

enum hf__posture { HF__AWAKE, HF__PARKED, HF__DRIVING };

void hf__sleeper_init(struct hf__sleeper *, hf_cancel *);

/* Is it to look whether there is news before it sleeps? *seen: the word before
 * that. Not if it has just been made, and could only see what it saw then. */
static inline bool hf__sleeper_checks(struct hf__sleeper *s, uint32_t *seen)
{
    bool fresh = s->fresh;

    s->fresh = false;
    *seen = fresh ? 0 : __atomic_load_n(s->word, __ATOMIC_SEQ_CST);
    return !fresh;
}

#endif
