/* What alloc.c and its scenes share. */
#ifndef ALLOC_H
#define ALLOC_H

#include "../../conformance/conf.h"

struct stage {
    /* The allocations of c fail, those of other only with WHOLE_PROCESS. */
    hf_client *c, *other;
    hf_lock *lock, *theirs;
    const char *name;
    int64_t ttl_ms; /* the TTL of c */
    int lost;       /* number of loss events */
};

/* arm() makes the n-th allocation from now on fail and, in the second pass, all
 * later ones; disarm() ends that. */
void arm(long n);
void disarm(void);
bool any_failed(void); /* true if an allocation has failed since arm() */

int open_client(struct stage *, hf_client **);
/* Releases the other client's lock. With WHOLE_PROCESS the allocations of that
 * client fail too, so its release may fail and be retried later. */
void they_let_go(struct stage *, long n);
/* Fails the test unless rc is 0 or a code that a failed allocation explains. */
void check_code(int rc, const char *verb, long n);

/* Evaluates the call while the n-th allocation fails, checks its code and
 * returns it. */
#define TRY(n, call)                                                           \
    ({                                                                         \
        int try_rc;                                                            \
                                                                               \
        arm(n);                                                                \
        try_rc = (call);                                                       \
        disarm();                                                              \
        check_code(try_rc, #call, n);                                          \
        try_rc;                                                                \
    })

enum scene_flag {
    SCENE_INSPECTS = 1 << 0, /* needs HF_CAP_INSPECT */
    SCENE_ONCE = 1 << 1,     /* only single failures: with no memory at all the
                                hold is rightly lost */
    SCENE_TWICE = 1 << 2,    /* has two variants, so runs at least twice */
    SCENE_SURELY = 1 << 3,   /* at least one allocation must fail */
    SCENE_RENEWS = 1 << 4,   /* a run takes as long as a lease */
    SCENE_KINDS = 1 << 5,    /* needs locks other than the mutex */
};

struct scene {
    const char *name;
    /* Runs the scene while the n-th allocation fails, and checks the
     * outcome. */
    void (*play)(struct stage *, long n);
    unsigned flags;
};

extern const struct scene scenes[]; /* the last entry has no name */

#endif
