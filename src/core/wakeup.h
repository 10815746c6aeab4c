/*
 * Waking: a thread that sleeps for something (hf__sleeper), the driver on the
 * client's descriptors, the helper thread.
 *
 * Whoever has news for a sleeper changes its word, by hf__sleeper_notify(),
 * while the sleeper cannot go away: it takes the same mutex before it returns.
 */
#ifndef HF_WAKEUP_H
#define HF_WAKEUP_H

#include "base/futex.h"
#include "base/timer.h"

#include <holdfast.h>
#include <stdbool.h>

/* In hf_cancel.word, as in the word of any sleeper; the rest of it counts. */
#define HF__CANCELLED 1u
#define HF__ATTACHED 2u /* firing has to wake the driver of its client, too */
#define HF__NEWS 4u

/* A thread that waits for something, or an asynchronous verb (hf__async_of),
 * which has none of the other members: its callback is queued instead. */
struct hf__sleeper {
    struct hf__sleeper *next, *prev; /* of the followers of a driver */
    uint32_t *word;                  /* own_word, or that of an hf_cancel */
    uint32_t own_word;
    uint32_t posture; /* enum hf__posture */
    bool following;
    bool fresh; /* see hf__sleeper_checks() */
    bool is_async;
};

enum hf__posture { HF__AWAKE, HF__PARKED, HF__DRIVING };
void hf__sleeper_init(struct hf__sleeper *, hf_cancel *);

/* Must it check for news before it sleeps? *seen: the word before that check.
 * False if it has just been made: it would only see what it saw then. */
static inline bool hf__sleeper_checks(struct hf__sleeper *s, uint32_t *seen)
{
    bool fresh = s->fresh;

    s->fresh = false;
    *seen = fresh ? 0 : __atomic_load_n(s->word, __ATOMIC_SEQ_CST);
    return !fresh;
}

/* Changes the word of a sleeper. What is returned, if anything, is to be given
 * to hf__futex_wake(), at once or when the mutex that guards the sleeper is
 * free again. */
uint32_t *hf__sleeper_notify(hf_client *, struct hf__sleeper *);
void hf__sleeper_wake(hf_client *, struct hf__sleeper *);

/* Of an eventfd, which does not block. Async-signal-safe. */
void hf__fd_post(int fd);
void hf__fd_drain(int fd);

/* The helper thread is to be awake by then; client->mu is held. */
void hf__helper_due_locked(hf_client *, hf__time at);
/* The same, for that timer, which is set. */
void hf__helper_timer(hf_client *, struct hf__timer *, hf__time at);
/* Requests under way that no thread has moved for this long are moved by the
 * helper thread. */
#define HF__PATIENCE (100 * HF__MS)
/* If anything is under way that no thread drives for, the helper thread looks
 * after it within HF__PATIENCE. */
void hf__helper_check_later(hf_client *);

#endif
