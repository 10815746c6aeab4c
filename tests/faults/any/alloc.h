/* What the scenes of alloc share. */
#ifndef ALLOC_H
#define ALLOC_H

#include "../../conformance/conf.h"

struct stage {
    hf_client *c, *other; /* whose memory fails; whose does not */
    hf_lock *lock, *theirs;
    const char *name;
    int64_t ttl_ms; /* of c */
    int lost;       /* events */
};

/* From now on the n-th allocation fails; none fails. */
void arm(long n);
void disarm(void);
bool any_failed(void); /* since it was armed */

int open_client(struct stage *, hf_client **);
/* The other client, whose memory fails as well if it is the whole process's.
 * Its release is made good later. */
void they_let_go(struct stage *, long n);
/* Fails the test unless it is a code for it, or 0. */
void check_code(int rc, const char *verb, long n);

/* The code of the call, during which the n-th allocation fails: 0, or one that
 * says so. */
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
    SCENE_INSPECTS = 1 << 0, /* only where that is declared */
    SCENE_ONCE = 1 << 1,     /* without memory for good all is lost, rightly */
    SCENE_TWICE = 1 << 2,    /* in two ways, so at least two times */
    SCENE_SURELY = 1 << 3,   /* it cannot do without memory */
    SCENE_RENEWS = 1 << 4,   /* lasts for a lease */
    SCENE_KINDS = 1 << 5,    /* only where there are others than the mutex */
};

struct scene {
    const char *name;
    /* Makes the n-th allocation fail, once, and checks what comes of it. */
    void (*play)(struct stage *, long n);
    unsigned flags;
};

extern const struct scene scenes[]; /* the last has no name */

#endif
