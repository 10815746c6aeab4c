/* Release: undoes one acquire. Its first half sends the request, and its second
 * half waits for the answer. A caller can begin several releases before it
 * waits for the first of them. */
#ifndef HF_RELEASE_H
#define HF_RELEASE_H

#include "core/lock.h"
#include "core/wakeup.h"

/* Undoes one acquire of that owner. line->mu is held. Returns PENDING if r,
 * which may be NULL, will be finished later. */
int hf__release_enter(struct hf__line *, uint64_t owner, struct hf__releaser *);

/* A release that has begun and is not answered yet. */
struct hf__releasing {
    struct hf__sleeper sleeper;
    struct hf__releaser releaser;
    hf_error word; /* the server's message; its code is 0 if there is none */
    hf_lock *lock;
    struct hf__line *line;
    hf__time until;
};

/* The first half of a release. If it returns PENDING, the request was sent: *r
 * must then stay where it is, and hf__release_end() must follow. Any other
 * result is final. */
int hf__release_begin(hf_lock *, struct hf__releasing *, hf_error *);
/* The second half of a release: waits for the answer, and returns the
 * result. */
int hf__release_end(struct hf__releasing *, hf_error *);

#endif
