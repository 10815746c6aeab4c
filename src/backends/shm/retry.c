/*
 * Every change of a word is a swap, which fails if the word has changed since
 * it was read, and is tried again. If all clients keep to the rules, a swap
 * fails only because another one succeeded, and each try is a new chance. But a
 * process that changes the word continually, or a damaged word, would keep a
 * caller for ever. Therefore a loop gives up when its thread has tried in vain
 * for longer than ordinary contention ever takes: a tenth of a second of
 * processor time. (Time in which the thread does not run does not count.) In
 * that time a thread tries some thousand times with the longest queue, and a
 * million times with a short one.
 *
 * The change is then not made, and the caller gets EBACKEND. A release that
 * gives up is like a release that a server refuses: its owner no longer holds
 * the lock, the word stays in our name, and the core repeats the release until
 * it succeeds. Likewise, if a wait cannot leave the queue, the core repeats the
 * abandon.
 *
 * One call may run several such loops. Therefore, after a loop has given up,
 * all loops on the same name are hurried for a second: they give up after 64
 * tries.
 */
#include "retry.h"

#include <time.h>

#define RETRY_NS (100 * HF__MS)

#define RETRY_BETWEEN 64u /* tries between two readings of the clock */

#define HURRY_NS (1000 * HF__MS)

static int64_t retry_processor_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 * HF__MS + now.tv_nsec;
}

/* Returns the element of s->hurried for the entry of t. *number is the number
 * of the entry plus 1, or 0 if t has no entry. While the entry is hurried, the
 * low 16 bits of the element contain that number, and the bits above them
 * contain the time in ms at which the hurry ends. */
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
                        "is damaged, or a process that uses it breaks the "
                        "rules",
                        s->path);
}
