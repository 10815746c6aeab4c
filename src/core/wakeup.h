/*
 * Waking: a thread that sleeps until something happens (hf__sleeper), the
 * driver on the client's descriptors, and the helper thread.
 *
 * To notify a sleeper, hf__sleeper_notify() changes its word. The mutex that
 * the sleeper takes before it returns must be held, so that the sleeper cannot
 * go away.
 */
#ifndef HF_WAKEUP_H
#define HF_WAKEUP_H

#include "base/futex.h"
#include "base/timer.h"

#include <holdfast.h>
#include <stdbool.h>

/* Bits of hf_cancel.word, and of the word of any sleeper; the rest is a
 * count. */
#define HF__CANCELLED 1u
#define HF__ATTACHED 2u /* firing must also wake the client's driver */
#define HF__NEWS 4u

/* A thread that sleeps until it is notified; or an asynchronous verb
 * (hf__async_of), whose callback is queued instead and which does not use the
 * other members. */
struct hf__sleeper {
    struct hf__sleeper *next, *prev; /* in client->followers */
    uint32_t *word;                  /* own_word, or that of an hf_cancel */
    uint32_t own_word;
    uint32_t posture; /* enum hf__posture */
    bool following;
    bool fresh; /* see hf__sleeper_checks() */
    bool is_async;
};

enum hf__posture { HF__AWAKE, HF__PARKED, HF__DRIVING };
/* With a cancel handle, which may be NULL, the sleeper uses its word: firing it
 * wakes the sleeper. */
void hf__sleeper_init(struct hf__sleeper *, hf_cancel *);

/* Returns whether the sleeper must look for news before it sleeps; *seen is its
 * word before that. False if it has just looked (fresh) and would see the same
 * again. */
static inline bool hf__sleeper_checks(struct hf__sleeper *s, uint32_t *seen)
{
    bool fresh = s->fresh;

    s->fresh = false;
    *seen = fresh ? 0 : __atomic_load_n(s->word, __ATOMIC_SEQ_CST);
    return !fresh;
}

/* Changes the sleeper's word. The caller passes the result, unless NULL, to
 * hf__futex_wake(): at once, or when the mutex that guards the sleeper is free
 * again. */
uint32_t *hf__sleeper_notify(hf_client *, struct hf__sleeper *);
void hf__sleeper_wake(hf_client *, struct hf__sleeper *);

/* Make an eventfd readable, and no longer readable, without blocking.
 * hf__fd_post() is async-signal-safe. */
void hf__fd_post(int fd);
void hf__fd_drain(int fd);

/* Makes sure that the helper thread is awake at that time. client->mu is
 * held. */
void hf__helper_due_locked(hf_client *, hf__time at);
/* Sets that timer, and makes sure that the helper thread is awake when it
 * fires. Takes client->mu itself. */
void hf__helper_timer(hf_client *, struct hf__timer *, hf__time at);
/* The helper thread moves requests on that no thread has moved for this
 * long. */
#define HF__PATIENCE (100 * HF__MS)
/* If requests are under way and no thread drives, the helper thread will look
 * after them within HF__PATIENCE. */
void hf__helper_check_later(hf_client *);

#endif
