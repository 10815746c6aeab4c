/*
 * Every change of a word is a swap that fails if the word has changed since it
 * was read; then it is tried again. Among clients that keep to the rules one
 * that fails does so because another has come on, and the next try is another
 * chance. But a process that changes the word all the time, or a word that is
 * damaged, would keep a caller for ever. So a loop ends when its thread has
 * tried in vain for a time that no contention comes to: a tenth of a second on
 * a processor (time in which it did not run does not count), which is some
 * thousand tries beside the longest queue, and a million beside a short one.
 *
 * What was to be done then stays undone, and the caller gets EBACKEND. A
 * release that was given up is one that was refused, as a server refuses it:
 * its owner does not hold the lock any more, the word stays in our name, and
 * the core repeats the release until it succeeds. So does a wait that could not
 * leave.
 *
 * A call may come to several such loops. So after one was given up the others
 * about the same name end early, for a second.
 */
#include "retry.h"

#include <time.h>

#define RETRY_NS (100 * HF__MS)

#define RETRY_BETWEEN 64u /* looks at the clock */

#define HURRY_NS (1000 * HF__MS)

static int64_t retry_processor_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 * HF__MS + now.tv_nsec;
}

/* The place of what t is about, and what is there while it is hurried: its
 * number in 16 bits, and before that the end in ms. */
static shm_u64 *retry_hurried(struct shm *s, const struct shm_retry *t,
                              uint64_t *number)
{
    *number = t->of ? (uint64_t)(t->of - s->file->entry) + 1 : 0;
    return &s->hurried[*number % SHM_HURRIED];
}

static bool retry_is_hurried(struct shm *s, const struct shm_retry *t)
{
    uint64_t number, is = atomic_load(retry_hurried(s, t, &number));

    return (is & 0xffff) == number &&
           s->core->now() < (hf__time)(is >> 16) * HF__MS;
}

static void retry_hurry(struct shm *s, const struct shm_retry *t)
{
    uint64_t number;
    shm_u64 *place = retry_hurried(s, t, &number);

    atomic_store(place, shm_to_ms(s->core->now() + HURRY_NS) << 16 | number);
}

bool hf__shm_retry(struct shm *s, struct shm_retry *t)
{
    int64_t now;

    if (++t->len % RETRY_BETWEEN)
        return true;
    if (retry_is_hurried(s, t))
        return false;
    now = retry_processor_time();
    if (t->len == RETRY_BETWEEN)
        t->since = now;
    if (now - t->since < RETRY_NS)
        return true;
    retry_hurry(s, t);
    return false;
}

int hf__shm_retry_refuse(struct shm *s)
{
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: the word of a lock changes all the time: the file "
                        "is damaged, or a process does it that does not keep "
                        "to the rules",
                        s->path);
}
