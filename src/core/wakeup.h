/*
 * Waking: a thread that sleeps until something happens (hf__sleeper), the
 * driver on the client's descriptors, and the helper thread.
 *
 * To notify a sleeper, hf__sleeper_notify() changes its word. The caller must
 * hold a mutex that the sleeping thread locks before its verb returns.
 * Therefore the sleeper, which is on the stack of that thread, still exists.
 */
#ifndef HF_WAKEUP_H
#define HF_WAKEUP_H

#include "base/futex.h"
#include "base/timer.h"

#include <holdfast.h>
#include <stdbool.h>

/* Bits of hf_cancel.word, and of the word of any sleeper. The bits from
 * HF__NEWS on are a count. */
#define HF__CANCELLED 1u
#define HF__ATTACHED 2u /* hf_cancel_fire() must also wake the driver */
#define HF__NEWS 4u

/* A thread that sleeps until it is notified, or an asynchronous verb
 * (hf__async_of). For an asynchronous verb only is_async is used: instead of
 * waking a thread, the core queues the callback of the verb. */
struct hf__sleeper {
    struct hf__sleeper *next, *prev; /* in client->followers */
    uint32_t *word;                  /* own_word, or the word of an hf_cancel */
    uint32_t own_word;
    uint32_t posture; /* enum hf__posture */
    bool following;
    bool fresh; /* see hf__sleeper_checks() */
    bool is_async;
};

enum hf__posture { HF__AWAKE, HF__PARKED, HF__DRIVING };
/* Initializes a sleeper. If `cancel` is not NULL, the sleeper uses the word of
 * that hf_cancel, so that hf_cancel_fire() wakes the sleeper. */
void hf__sleeper_init(struct hf__sleeper *, hf_cancel *);

/* Returns whether the sleeper must look for news before it sleeps. If so, sets
 * *seen to the value of its word before that look. Returns false if the sleeper
 * has just looked (fresh) and would see the same again. */
static inline bool hf__sleeper_checks(struct hf__sleeper *s, uint32_t *seen)
{
    bool fresh = s->fresh;

    s->fresh = false;
    *seen = fresh ? 0 : __atomic_load_n(s->word, __ATOMIC_SEQ_CST);
    return !fresh;
}

/* Changes the sleeper's word and, if the sleeper drives, makes wake_fd
 * readable. If the result is not NULL, the caller must pass it to
 * hf__futex_wake(), at once or after it has unlocked the mutex that guards the
 * sleeper. */
uint32_t *hf__sleeper_notify(hf_client *, struct hf__sleeper *);
/* Changes the sleeper's word, and wakes its thread at once. */
void hf__sleeper_wake(hf_client *, struct hf__sleeper *);

/* Makes an eventfd readable, without blocking. Async-signal-safe. */
void hf__fd_post(int fd);
/* Makes an eventfd no longer readable, without blocking. */
void hf__fd_drain(int fd);

/* Makes sure that the helper thread is awake at that time. client->mu is
 * held. */
void hf__helper_due_locked(hf_client *, hf__time at);
/* Sets that timer, and makes sure that the helper thread is awake when it
 * fires. Takes client->mu itself. */
void hf__helper_timer(hf_client *, struct hf__timer *, hf__time at);
/* If requests are under way and no thread has driven the client for this long,
 * the helper thread drives it. */
#define HF__PATIENCE (100 * HF__MS)
/* If requests are under way, or answers wait to be delivered, makes sure that
 * the helper thread wakes within HF__PATIENCE. If no other thread drives by
 * then, the helper thread drives. */
void hf__helper_check_later(hf_client *);

#endif
