/*
 * Invariants of a lease, a queue and a line set, checked after each step where
 * HF__ASSERT is defined: in debug builds, under sanitizers and in the
 * simulation. A violation aborts the process. Elsewhere these macros do
 * nothing.
 */
#ifndef HF_VERIFY_H
#define HF_VERIFY_H

#ifdef HF__ASSERT

#undef NDEBUG
#include <assert.h>
#include <stddef.h>

#define hf__assert(condition) assert(condition)

/* Declares hf__WHAT_verify(), which the .c file of struct hf__WHAT defines.
 * Must stand where that struct is complete. */
#define HF__VERIFIER(what)                                                     \
    void hf__##what##_verify(const struct hf__##what *);                       \
    static inline void hf__##what##_verify_at(struct hf__##what *const *p)     \
    {                                                                          \
        hf__##what##_verify(*p);                                               \
    }

/* Verifies the object when the function returns. Must stand at the head of a
 * function that changes the object. */
#define hf__ends_verified(what, object)                                        \
    struct hf__##what *const verified_##what                                   \
        __attribute__((cleanup(hf__##what##_verify_at))) = (object)

#else

#define HF__VERIFIER(what)
#define hf__ends_verified(what, object) (void)0

#endif

#endif
