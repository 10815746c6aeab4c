/*
 * What must be true of a lease, of a queue and of a line set after each step is
 * checked where HF__ASSERT is defined: in debug builds, under sanitizers and in
 * the simulation. If it is not, the process aborts. Elsewhere these macros are
 * nothing.
 */
#ifndef HF_VERIFY_H
#define HF_VERIFY_H

#ifdef HF__ASSERT

#undef NDEBUG
#include <assert.h>
#include <stddef.h>

#define hf__assert(condition) assert(condition)

/* Where struct hf__WHAT is complete; its file defines hf__WHAT_verify(). */
#define HF__VERIFIER(what)                                                     \
    void hf__##what##_verify(const struct hf__##what *);                       \
    static inline void hf__##what##_verify_at(struct hf__##what *const *p)     \
    {                                                                          \
        hf__##what##_verify(*p);                                               \
    }

/* At the head of a function that changes it: verified when it returns, by
 * whichever way. */
#define hf__ends_verified(what, object)                                        \
    struct hf__##what *const verified_##what                                   \
        __attribute__((cleanup(hf__##what##_verify_at))) = (object)

#else

#define HF__VERIFIER(what)
#define hf__ends_verified(what, object) (void)0

#endif

#endif
