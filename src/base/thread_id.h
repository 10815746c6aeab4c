/*
 * Owners of holds: threads and handles, each with a number that is never
 * reused. The record of a thread outlives the thread while a line still refers
 * to it as its last owner, so that the helper thread sees that the owner of a
 * hold has exited.
 */
#ifndef HF_THREAD_ID_H
#define HF_THREAD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__thread {
    uint64_t number;
    uint32_t refs; /* atomic: references by the thread itself, by lines, and by
                      readers' entries */
    uint32_t gone; /* atomic: the thread has exited */
};

extern __thread struct hf__thread *hf__thread_self
    __attribute__((tls_model("initial-exec")));

/* Creates the record of the calling thread, which has none yet. Returns NULL if
 * out of memory. */
struct hf__thread *hf__thread_make(void);

/* Returns the record of the calling thread, created if necessary, or NULL if
 * out of memory. */
static inline struct hf__thread *hf__thread_me(void)
{
    return __builtin_expect(hf__thread_self != NULL, 1) ? hf__thread_self
                                                        : hf__thread_make();
}

/* Returns whether the thread has exited. NULL means that the owner is a handle,
 * which never exits. */
static inline bool hf__thread_gone(const struct hf__thread *t)
{
    return t && __atomic_load_n(&t->gone, __ATOMIC_ACQUIRE);
}

/* Adds a reference to the record. */
void hf__thread_ref(struct hf__thread *);
/* Drops a reference; the last one frees the record. NULL is allowed. */
void hf__thread_unref(struct hf__thread *);

/* Returns a number that no owner has had. */
uint64_t hf__owner_number(void);

/* This bit is set in the number of an owner that is a handle. */
#define HF__HANDLE_OWNS (1ull << 62)

/* Returns whether the owner is a thread; otherwise it is a handle. */
static inline bool hf__owner_is_thread(uint64_t owner)
{
    return !(owner & HF__HANDLE_OWNS);
}

#endif
