/* Release: undoes one acquire, and waits for the answer in two halves. */
#ifndef HF_RELEASE_H
#define HF_RELEASE_H

#include "core/lock.h"
#include "core/wakeup.h"

/* Undoes one acquire of that owner. line->mu is held. Returns PENDING if r,
 * which may be NULL, will be finished later. */
int hf__release_enter(struct hf__line *, uint64_t owner, struct hf__releaser *);

/* A release whose answer is awaited, between the two halves. */
struct hf__releasing {
    struct hf__sleeper sleeper;
    struct hf__releaser releaser;
    hf_error word; /* the server's text; code 0: there is none */
    hf_lock *lock;
    struct hf__line *line;
    hf__time until;
};

/* The first half of a release. Returns PENDING if the request was sent: then *r
 * must stay where it is, and hf__release_end() must follow. Any other result is
 * final. */
int hf__release_begin(hf_lock *, struct hf__releasing *, hf_error *);
int hf__release_end(struct hf__releasing *, hf_error *);

#endif
