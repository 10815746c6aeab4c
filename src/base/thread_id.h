/*
 * Owners: threads and handles, each with a number that is never used again. A
 * thread's record outlives the thread while a line remembers it as its last
 * owner, so that the helper thread sees that the owner of a hold has exited.
 */
#ifndef HF_THREAD_ID_H
#define HF_THREAD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__thread {
    uint64_t number;
    uint32_t refs; /* atomic: the thread's own, and one per line */
    uint32_t gone; /* atomic: the thread has exited */
};

extern __thread struct hf__thread *hf__thread_self
    __attribute__((tls_model("initial-exec")));

/* Makes the record of the calling thread, which has none yet. NULL: out of
 * memory. */
struct hf__thread *hf__thread_make(void);

/* Returns the record of the calling thread, created if necessary; NULL if out
 * of memory. */
static inline struct hf__thread *hf__thread_me(void)
{
    return __builtin_expect(hf__thread_self != NULL, 1) ? hf__thread_self
                                                        : hf__thread_make();
}

/* Returns whether the thread has exited. NULL stands for a handle, which never
 * exits. */
static inline bool hf__thread_gone(const struct hf__thread *t)
{
    return t && __atomic_load_n(&t->gone, __ATOMIC_ACQUIRE);
}

/* Count who refers to the record; the last unref frees it. */
void hf__thread_ref(struct hf__thread *);
void hf__thread_unref(struct hf__thread *); /* NULL is allowed */

/* Returns a number that no owner has had. */
uint64_t hf__owner_number(void);

/* This bit is set in the number of a handle that owns. */
#define HF__HANDLE_OWNS (1ull << 62)

/* False: the owner is a handle. */
static inline bool hf__owner_is_thread(uint64_t owner)
{
    return !(owner & HF__HANDLE_OWNS);
}

#endif
