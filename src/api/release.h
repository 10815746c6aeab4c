/* Release: one acquire less, and the wait for its answer in two halves. */
#ifndef HF_RELEASE_H
#define HF_RELEASE_H

#include "core/lock.h"
#include "core/wakeup.h"

/* One acquire less, with line->mu held. PENDING: the releaser, if there is one,
 * will be told. */
int hf__release_enter(struct hf__line *, uint64_t owner, struct hf__releaser *);

/* A release whose answer is waited for, in two halves. */
struct hf__releasing {
    struct hf__sleeper sleeper;
    struct hf__releaser releaser;
    hf_error word; /* code 0: nothing was said */
    hf_lock *lock;
    struct hf__line *line;
    hf__time until;
};

/* PENDING: it has been asked for, and the other half has to follow; in between
 * it stays where it is. Else all is done. */
int hf__release_begin(hf_lock *, struct hf__releasing *, hf_error *);
int hf__release_end(struct hf__releasing *, hf_error *);

#endif
